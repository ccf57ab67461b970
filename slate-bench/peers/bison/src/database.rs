//! Opens the databases.

use std::{collections::HashMap, path::Path};

use bison_db::{Db, DbOptions, DocId, SyncPolicy};
use slate_bench::{Field, harness::Result};

/// One database per user, because bison-db has no collections.
#[derive(Debug)]
pub(crate) struct Bison {
    pub(crate) users: Vec<User>,
}

/// A user's database.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) db: Db,
    /// bison-db's own number of the document with each `_id`. This map costs less than a third index.
    pub(crate) ids: HashMap<i64, DocId>,
}

impl Bison {
    /// Creates new databases in an empty directory, with two indexes each.
    ///
    /// # Errors
    /// Fails with bison-db's errors.
    pub(crate) fn open(folder: &Path, users: usize) -> Result<Self> {
        let open = |user: usize| {
            // A call returns when the operating system has the data, without a sync.
            let options = DbOptions::new().sync(SyncPolicy::Manual);
            let mut db = Db::open_with(folder.join(format!("user-{}.bison", user + 1)), options)?;
            for field in Field::INDEXED {
                db.create_index(field.name())?;
            }
            Ok(User { db, ids: HashMap::new() })
        };
        Ok(Self { users: (0..users).map(open).collect::<Result<_>>()? })
    }
}
