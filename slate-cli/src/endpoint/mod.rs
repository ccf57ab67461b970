//! The target of commands: an open database, or a database of a server.

mod rows;
#[cfg(feature = "client")]
mod server;
#[cfg(not(feature = "client"))]
#[path = "no_client.rs"]
mod server;

use bson::{Bson, Document, RawDocument, RawDocumentBuf, doc};
use slate_core::{Database, RenameTarget};

pub(crate) use rows::Rows;
pub(crate) use server::Server;

use crate::failure::{Failure, Result};

/// The database of a command.
#[derive(Clone)]
pub(crate) enum Endpoint {
    Embedded(Database),
    Server(Server),
}

/// What a signal does to an insert on a server, while its reply is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnSignal {
    /// The wait ends at once.
    End,
    /// The reply is awaited for some seconds, because the collection is dropped next: an insert that is still running could create it
    /// again.
    Finish,
}

/// Whether a URL names a server.
pub(crate) fn is_server(url: &str) -> bool {
    url.starts_with("mongodb:") || url.starts_with("mongodb+srv:")
}

/// Returns a URL as it may be shown: without the name and the password of a server's user.
pub(crate) fn shown(url: &str) -> String {
    let hidden = || {
        let (scheme, rest) = url.split_once("://").filter(|_| is_server(url))?;
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (_, hosts) = authority.rsplit_once('@')?;
        // Options can contain passwords, too.
        Some(format!("{scheme}://{hosts}{}", path.split('?').next().unwrap_or_default()))
    };
    hidden().unwrap_or_else(|| url.to_owned())
}

impl Endpoint {
    /// Runs one of MongoDB's commands, and returns its reply.
    ///
    /// # Errors
    /// Fails as the command does.
    pub(crate) fn run(&self, command: &Document) -> Result<Document> {
        let raw = RawDocumentBuf::try_from(command).map_err(|error| Failure::usage(error.to_string()))?;
        match self {
            Self::Embedded(database) => {
                Document::try_from(database.command(&raw)?.as_ref()).map_err(|error| Failure::new(error.to_string()))
            }
            Self::Server(server) => server.run(raw),
        }
    }

    /// Runs a command that writes: on a server with the write concern of its URL.
    ///
    /// # Errors
    /// Fails as the command does, and if what it has written does not satisfy the write concern.
    pub(crate) fn write(&self, command: &Document) -> Result<Document> {
        match self {
            Self::Embedded(_) => self.run(command),
            Self::Server(server) => server.write(command),
        }
    }

    /// Runs a command like [`write`](Self::write), also after a signal: then a server has some seconds to reply.
    ///
    /// # Errors
    /// Fails as `write` does.
    pub(crate) fn write_to_end(&self, command: &Document) -> Result<Document> {
        match self {
            Self::Embedded(_) => self.run(command),
            Self::Server(server) => server.write_to_end(command),
        }
    }

    /// Runs a command whose reply is a cursor, and returns all its documents.
    ///
    /// # Errors
    /// Fails as the command does.
    pub(crate) fn listed(&self, command: &Document) -> Result<Vec<Document>> {
        match self {
            // An embedded database replies with all documents in the first batch.
            Self::Embedded(_) => {
                let reply = self.run(command)?;
                let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
                Ok(batch.into_iter().flatten().filter_map(Bson::as_document).cloned().collect())
            }
            Self::Server(server) => {
                let (mut rows, mut listed) = (server.rows(command)?, Vec::new());
                let read = |row: &RawDocument| Document::try_from(row).map_err(|error| Failure::new(error.to_string()));
                while let Some(row) = rows.next(read)? {
                    listed.push(row);
                }
                Ok(listed)
            }
        }
    }

    /// Returns the names of the collections and views, sorted, without a server's own collections.
    ///
    /// # Errors
    /// Fails if the storage or the server fails.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        match self {
            Self::Embedded(database) => Ok(database.list_collection_names()?),
            Self::Server(_) => {
                let command = doc! { "listCollections": 1, "nameOnly": true, "authorizedCollections": true };
                let names = self.listed(&command)?.into_iter();
                let names = names.filter_map(|collection| Some(collection.get_str("name").ok()?.to_owned()));
                let mut names: Vec<String> = names.filter(|name| !name.starts_with("system.")).collect();
                names.sort_unstable();
                Ok(names)
            }
        }
    }

    /// Returns whether there is a collection or a view of this name.
    ///
    /// # Errors
    /// Fails if the storage or the server fails.
    pub(crate) fn has(&self, name: &str) -> Result<bool> {
        match self {
            Self::Embedded(database) => Ok(database.collection::<RawDocumentBuf>(name).exists()?),
            Self::Server(_) => {
                let filter = doc! { "name": name };
                let command = doc! {
                    "listCollections": 1, "filter": filter, "nameOnly": true, "authorizedCollections": true,
                };
                Ok(!self.listed(&command)?.is_empty())
            }
        }
    }

    /// Checks that there is a collection or a view of this name.
    ///
    /// # Errors
    /// Fails with the names of the existing collections if this one does not exist.
    pub(crate) fn check(&self, name: &str) -> Result<()> {
        if self.has(name)? {
            return Ok(());
        }
        let names = self.names()?;
        let failure = Failure::missing(format!("there is no collection {name:?}"), 26, "NamespaceNotFound");
        let listed = names.iter().take(12).map(String::as_str).collect::<Vec<_>>().join(", ");
        Err(match names.len() {
            0 => failure.hint("the database is empty"),
            1..=12 => failure.hint(format!("the collections are {listed}")),
            _ => failure.hint(format!("some of the collections are {listed}")),
        })
    }

    /// Returns a collection's stored number of documents, without reading the documents.
    ///
    /// # Errors
    /// Fails if the storage or the server fails.
    pub(crate) fn estimated_count(&self, name: &str) -> Result<u64> {
        match self {
            Self::Embedded(database) => Ok(database.collection::<RawDocumentBuf>(name).estimated_document_count()?),
            Self::Server(_) => Ok(number(&self.run(&doc! { "count": name })?, "n")),
        }
    }

    /// Drops a collection or a view, if there is one.
    ///
    /// # Errors
    /// Fails if the storage or the server fails.
    pub(crate) fn drop_collection(&self, name: &str) -> Result<()> {
        match self {
            Self::Embedded(database) => Ok(database.collection::<RawDocumentBuf>(name).drop().map(drop)?),
            Self::Server(_) if self.has(name)? => self.write(&doc! { "drop": name }).map(drop),
            Self::Server(_) => Ok(()),
        }
    }

    /// Renames a collection.
    ///
    /// # Errors
    /// Fails with `NamespaceExists` (48) if `to` already exists; if the storage or the server fails.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<()> {
        match self {
            Self::Embedded(database) => {
                let collection = database.collection::<RawDocumentBuf>(from);
                Ok(collection.rename(to, RenameTarget::MustNotExist).map(drop)?)
            }
            Self::Server(server) => server.rename(from, to),
        }
    }

    /// Waits until what was written is on the device. For a server it does nothing: each reply follows the write concern.
    ///
    /// # Errors
    /// Fails if the device fails.
    pub(crate) fn flush(&self) -> Result<()> {
        match self {
            Self::Embedded(database) => Ok(database.flush()?),
            Self::Server(_) => Ok(()),
        }
    }
}

/// Returns a numeric field of a reply; 0 if it is missing or negative.
pub(crate) fn number(reply: &Document, field: &str) -> u64 {
    let number = match reply.get(field) {
        Some(Bson::Int32(number)) => i64::from(*number),
        Some(Bson::Int64(number)) => *number,
        Some(Bson::Double(number)) => truncated(*number),
        _ => 0,
    };
    u64::try_from(number).unwrap_or(0)
}

#[expect(clippy::cast_possible_truncation, reason = "the cast of a double saturates")]
fn truncated(number: f64) -> i64 {
    number as i64
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn no_password_is_shown() {
        for (url, expected) in [
            ("redb:a@b.slate", "redb:a@b.slate"),
            ("mongodb://localhost/shop?tls=true", "mongodb://localhost/shop?tls=true"),
            ("mongodb://ada:x%40@h1,h2:1/shop?authSource=admin", "mongodb://h1,h2:1/shop"),
            ("mongodb://ada:p@ss@h", "mongodb://h"),
            ("mongodb+srv://ada:x@h?tlsCertificateKeyFilePassword=x", "mongodb+srv://h"),
        ] {
            assert_eq!(shown(url), expected);
        }
    }
}
