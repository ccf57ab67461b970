//! The databases, opened.

use std::{collections::HashMap, path::Path};

use bison_db::{Db, DbOptions, DocId, SyncPolicy};
use slate_bench::{Field, harness::Result};

/// A database per user: bison-db has no collections.
#[derive(Debug)]
pub(crate) struct Bison {
    pub(crate) users: Vec<User>,
}

/// A user's database.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) db: Db,
    /// Which document has which `_id`: bison-db numbers documents itself. A map of the program's own costs less than a third
    /// index would.
    pub(crate) ids: HashMap<i64, DocId>,
}

impl Bison {
    /// Makes new databases in an empty folder, with two indexes each.
    ///
    /// # Errors
    /// bison-db's.
    pub(crate) fn open(folder: &Path, users: usize) -> Result<Self> {
        let open = |user: usize| {
            // What is written is in the system's hands once the call is over, and on the device some time later.
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
