//! The database that cases run on. It is emptied before each case.

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{Database, Durability, Error};
use tempfile::TempDir;

use super::btree::BTreeStore;

/// A store and its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Memory,
    Redb,
    #[cfg(feature = "rocksdb")]
    RocksDb,
    /// The backend of docs/writing-a-backend.md.
    BTree,
    /// On the cluster that the variable `SLATE_TIKV` names; not among [`ALL`](Self::ALL).
    #[cfg(feature = "tikv")]
    Tikv,
}

impl Backend {
    /// The stores in this build.
    pub(crate) const ALL: &[Self] = &[
        Self::Memory,
        Self::Redb,
        #[cfg(feature = "rocksdb")]
        Self::RocksDb,
        Self::BTree,
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        #[cfg(feature = "tikv")]
        if name == Self::Tikv.name() {
            return Some(Self::Tikv);
        }
        Self::ALL.iter().copied().find(|backend| backend.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Redb => "redb",
            #[cfg(feature = "rocksdb")]
            Self::RocksDb => "rocksdb",
            Self::BTree => "btree",
            #[cfg(feature = "tikv")]
            Self::Tikv => "tikv",
        }
    }
}

pub(crate) struct Bench {
    database: Database,
    _folder: TempDir,
}

/// An error of a command.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    pub(crate) code: i32,
    pub(crate) message: String,
    /// The name of an unsupported feature, if that is the reason.
    pub(crate) unsupported: Option<String>,
}

impl Bench {
    pub(crate) fn open(backend: Backend) -> Result<Self, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("oracle.slate");
        // The data need not survive a crash.
        let open = |url: &str| Database::builder(url).durability(Durability::Deferred).open();
        let database = match backend {
            Backend::Memory => open("memory:"),
            Backend::Redb => open(&format!("redb:{}", path.display())),
            #[cfg(feature = "rocksdb")]
            Backend::RocksDb => open(&format!("rocksdb:{}", path.display())),
            Backend::BTree => Database::with_store(BTreeStore::default()),
            #[cfg(feature = "tikv")]
            Backend::Tikv => {
                let driver = std::env::var("SLATE_TIKV").map_err(|_| "SLATE_TIKV names no cluster")?;
                open(&format!("tikv://{driver}/oracle-{}", std::process::id()))
            }
        }?;
        Ok(Self { database, _folder: folder })
    }

    /// Drops every collection.
    pub(crate) fn empty(&self) -> Result<(), Refused> {
        for name in self.database.list_collection_names().map_err(Refused::from)? {
            self.command(&doc! { "drop": name })?;
        }
        Ok(())
    }

    /// Runs a command. A write error in the reply is returned as an error.
    pub(crate) fn command(&self, command: &Document) -> Result<Document, Refused> {
        let reply = self.reply(command)?;
        write_error(&reply).map_or(Ok(reply), Err)
    }

    /// Runs a command and returns its reply, which may contain write errors.
    pub(crate) fn reply(&self, command: &Document) -> Result<Document, Refused> {
        let unsendable = |error: bson::error::Error| Refused { code: 0, message: error.to_string(), unsupported: None };
        let command = RawDocumentBuf::try_from(command).map_err(unsendable)?;
        let reply = self.database.command(&command).map_err(Refused::from)?;
        Document::try_from(reply.as_ref()).map_err(unsendable)
    }

    /// Runs a command that returns a cursor, and reads all documents.
    pub(crate) fn rows(&self, collection: &str, command: &Document) -> Result<Vec<Bson>, Refused> {
        let mut reply = self.command(command)?;
        let mut rows = Vec::new();
        loop {
            let cursor = reply.get_document("cursor").cloned().unwrap_or_default();
            let batch = cursor.get_array("firstBatch").or_else(|_| cursor.get_array("nextBatch"));
            rows.extend(batch.into_iter().flatten().cloned());
            match cursor.get_i64("id") {
                Err(_) | Ok(0) => return Ok(rows),
                Ok(id) => reply = self.command(&doc! { "getMore": id, "collection": collection })?,
            }
        }
    }
}

/// Returns the first write error in a reply.
pub(crate) fn write_error(reply: &Document) -> Option<Refused> {
    let error = reply.get_array("writeErrors").ok()?.first()?.as_document()?;
    Some(Refused::from_write_error(error))
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let unsupported = error.unsupported().map(str::to_owned).or_else(|| unsupported_pattern(&error));
        Self { code: error.code(), message: error.to_string(), unsupported }
    }
}

/// Returns the unsupported construct of a regular expression, which fails with MongoDB's code for an invalid
/// expression.
fn unsupported_pattern(error: &Error) -> Option<String> {
    let name = error.message().strip_prefix("Regular expression is invalid: ")?.strip_suffix(" is not supported")?;
    (error.code() == INVALID_PATTERN).then(|| name.to_owned())
}

impl Refused {
    fn from_write_error(error: &Document) -> Self {
        let code = error.get_i32("code").unwrap_or_default();
        let message = error.get_str("errmsg").unwrap_or_default().to_owned();
        // A write error has no field for the name; its message starts with it.
        let unsupported = message.split_once(" is not supported").map(|(name, _)| name.to_owned());
        Self { code, message, unsupported: unsupported.filter(|_| code == NOT_IMPLEMENTED) }
    }
}

/// MongoDB's code for a regular expression that does not compile.
const INVALID_PATTERN: i32 = 51091;

/// MongoDB's code for an unsupported feature.
const NOT_IMPLEMENTED: i32 = 238;
