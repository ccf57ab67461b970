use std::sync::Arc;

use crate::{
    CollectionDescription, ReadCollection,
    call::{Scope, SharedReader},
    interrupt::CallLimits,
    namespace::DatabaseName,
};

/// One commit of a database, across all its collections; see [`Database::snapshot`](crate::Database::snapshot).
#[derive(Clone)]
pub struct Snapshot {
    reader: SharedReader,
    database: DatabaseName,
    limits: CallLimits,
}

impl Snapshot {
    pub(crate) fn new(reader: SharedReader, database: DatabaseName, limits: CallLimits) -> Self {
        Self { reader, database, limits }
    }

    pub(crate) fn reader(&self) -> &SharedReader {
        &self.reader
    }

    /// Returns a collection as of this commit.
    pub fn collection<T>(&self, name: &str) -> ReadCollection<T> {
        ReadCollection::new(self.scope(), self.database.stored(name), self.limits.clone())
    }

    /// Returns the same commit of another database of the store; see [`Database::database`](crate::Database::database).
    #[must_use]
    pub fn database(&self, name: &str) -> Self {
        Self { database: DatabaseName::new(name), ..self.clone() }
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope::Snapshot(Arc::clone(&self.reader))
    }

    /// Returns the names of the collections and views, sorted.
    pub fn list_collection_names(&self) -> Vec<String> {
        self.reader.catalog().names_in(&self.database)
    }

    /// Returns the collections with their indexes, and the views, sorted by name.
    pub fn list_collections(&self) -> Vec<CollectionDescription> {
        CollectionDescription::all(self.reader.catalog(), &self.database)
    }
}

crate::debug::shown! { self: Snapshot {} }
