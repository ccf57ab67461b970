//! The source of `export` and `copy`: one commit of a database that this process opens, or a database of a server, each collection as it
//! is when it is read.

use bson::{Document, RawDocumentBuf, doc};
use slate_core::{Database, Snapshot};

use super::definitions;
use crate::{
    endpoint::{Endpoint, Rows, Server},
    failure::Result,
};

/// A database that is read as a whole.
pub(super) enum CopySource {
    Embedded(Database, Snapshot),
    Server(Server),
}

impl CopySource {
    /// Begins to read a database.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub(super) fn of(target: Endpoint) -> Result<Self> {
        Ok(match target {
            Endpoint::Embedded(database) => {
                let snapshot = database.snapshot()?;
                Self::Embedded(database, snapshot)
            }
            Endpoint::Server(server) => Self::Server(server),
        })
    }

    /// Returns the database itself, not the snapshot.
    pub(super) fn endpoint(&self) -> Endpoint {
        match self {
            Self::Embedded(database, _) => Endpoint::Embedded(database.clone()),
            Self::Server(server) => Endpoint::Server(server.clone()),
        }
    }

    /// Returns the names of the collections and views, sorted.
    ///
    /// # Errors
    /// Fails if the server fails.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        match self {
            Self::Embedded(_, snapshot) => Ok(snapshot.list_collection_names()),
            Self::Server(_) => self.endpoint().names(),
        }
    }

    /// Returns the definitions of a collection's indexes. `options` are those of the collection.
    ///
    /// # Errors
    /// Fails if the storage or the server fails.
    pub(super) fn indexes(&self, name: &str, options: &Document) -> Result<Vec<Document>> {
        match self {
            Self::Embedded(_, snapshot) => definitions::indexes(&snapshot.collection(name)),
            Self::Server(_) => definitions::indexes_of(&self.endpoint(), name, options),
        }
    }

    /// Returns all documents of a collection.
    ///
    /// # Errors
    /// Fails if the storage or the server fails.
    pub(super) fn documents(&self, name: &str) -> Result<Rows> {
        match self {
            Self::Embedded(_, snapshot) => {
                Ok(Rows::Embedded(snapshot.collection::<RawDocumentBuf>(name).find(doc! {}).cursor()?))
            }
            Self::Server(server) => Ok(Rows::Server(server.rows(&doc! { "find": name })?)),
        }
    }
}
