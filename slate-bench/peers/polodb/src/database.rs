//! Opens the database.

use std::path::{Path, PathBuf};

use bson2::{Document, doc};
use polodb_core::{Collection, CollectionT, Database, IndexModel};
use slate_bench::{Field, harness::Result};

/// A PoloDB database.
pub(crate) struct Polo {
    pub(crate) database: Database,
    pub(crate) folder: PathBuf,
}

impl Polo {
    /// Creates a new database in an empty directory, with a collection and two indexes per user.
    ///
    /// # Errors
    /// Fails with PoloDB's errors.
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

    /// Returns a user's collection.
    pub(crate) fn collection(&self, user: usize) -> Collection<Document> {
        self.database.collection(&name(user))
    }
}

/// Returns the name of a user's collection.
pub(crate) fn name(user: usize) -> String {
    format!("user-{}", user + 1)
}
