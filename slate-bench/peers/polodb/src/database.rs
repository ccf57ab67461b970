//! The database, opened.

use std::path::{Path, PathBuf};

use bson2::{Document, doc};
use polodb_core::{Collection, CollectionT, Database, IndexModel};
use slate_bench::{Field, harness::Result};

/// A database of PoloDB's.
pub(crate) struct Polo {
    pub(crate) database: Database,
    pub(crate) folder: PathBuf,
}

impl Polo {
    /// Makes a new database in an empty folder, with a collection and two indexes per user.
    ///
    /// # Errors
    /// PoloDB's.
    pub(crate) fn open(folder: &Path, users: usize) -> Result<Self> {
        let folder = folder.join("database");
        let polo = Self { database: Database::open_path(&folder)?, folder };
        for user in 0..users {
            for field in Field::INDEXED {
                polo.collection(user).create_index(IndexModel { keys: doc! { field.name(): 1 }, options: None })?;
            }
        }
        Ok(polo)
    }

    /// A user's collection.
    pub(crate) fn collection(&self, user: usize) -> Collection<Document> {
        self.database.collection(&name(user))
    }
}

/// The name of a user's collection.
pub(crate) fn name(user: usize) -> String {
    format!("user-{}", user + 1)
}
