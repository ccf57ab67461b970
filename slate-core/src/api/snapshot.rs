use std::{fmt, sync::Arc};

use crate::{
    CollectionDescription, ReadCollection,
    call::{Scope, SharedReader},
    interrupt::CallLimits,
};

/// One commit of a database, across all its collections; see [`Database::snapshot`](crate::Database::snapshot).
#[derive(Clone)]
pub struct Snapshot {
    reader: SharedReader,
    limits: CallLimits,
}

impl Snapshot {
    pub(crate) fn new(reader: SharedReader, limits: CallLimits) -> Self {
        Self { reader, limits }
    }

    pub(crate) fn reader(&self) -> &SharedReader {
        &self.reader
    }

    /// Returns a collection as of this commit.
    pub fn collection<T>(&self, name: &str) -> ReadCollection<T> {
        ReadCollection::new(self.scope(), name, self.limits.clone())
    }

    pub(crate) fn scope(&self) -> Scope {
        Scope::Snapshot(Arc::clone(&self.reader))
    }

    /// Returns the names of the collections and views, sorted.
    pub fn list_collection_names(&self) -> Vec<String> {
        self.reader.catalog().names()
    }

    /// Returns the collections with their indexes, and the views, sorted by name.
    pub fn list_collections(&self) -> Vec<CollectionDescription> {
        CollectionDescription::all(self.reader.catalog())
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}
