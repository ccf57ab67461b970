//! The layout version of Slate's keys and values in a redb file.

use std::{io, path::Path};

use ::redb::{
    ReadTransaction, StorageBackend, StorageError, TableDefinition, TableError, TableHandle, WriteTransaction,
};

use super::{error, pages};
use crate::{Context, Error, Result};

/// The layout version that this version of Slate writes, and the newest that it reads.
const VERSION: u32 = 1;

/// The table with the layout version under the empty key.
const MARK: TableDefinition<'_, (), u32> = TableDefinition::new("slate");

/// redb's magic number and the position of the file format version in its header. From redb's design document,
/// <https://github.com/cberner/redb/blob/master/docs/design.md>.
const MAGIC: [u8; 9] = *b"redb\x1a\x0a\xa9\x0d\x0a";
const SLOT: usize = 64;
const SLOT_SIZE: usize = 128;
const GOD_BYTE: usize = MAGIC.len();
const REDB_VERSION: u8 = 3;

/// The content of a storage, judged by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Redb,
}

/// Checks the first bytes of a storage before redb opens it. redb would return `Corrupted` for a file of a later
/// version, and would create a new database in an empty file.
pub(super) fn inspect(path: Option<&Path>, len: u64, read: impl FnOnce(&mut [u8]) -> io::Result<()>) -> Result<Found> {
    let context = |detail: &'static str| Box::new(at(path, Context::new(detail)));
    if len == 0 {
        return Ok(Found::Nothing);
    }
    let mut header = [0; pages::HEADER_SIZE];
    let known = usize::try_from(len).unwrap_or(usize::MAX).min(header.len());
    let Some(part) = header.get_mut(..known) else { return Ok(Found::Nothing) };
    read(part)
        .map_err(|error| Error::Io(Box::new(at(path, Context::new("while reading its header").because(error)))))?;
    if !header.starts_with(&MAGIC) {
        return Err(Error::WrongFormat(context("not a redb file")));
    }
    let primary = header.get(GOD_BYTE).map_or(0, |flags| usize::from(flags & 1));
    if header.get(SLOT + primary * SLOT_SIZE).is_some_and(|version| *version > REDB_VERSION) {
        return Err(Error::NewerVersion(context("a later version of redb wrote the file")));
    }
    if pages::is_last_commit_damaged(&header) {
        let detail = "the header's record of the last commit does not have its checksum, although the database was closed properly";
        return Err(Error::Corrupt(context(detail)));
    }
    Ok(Found::Redb)
}

/// Like [`inspect`], for storage that the caller supplied.
pub(super) fn inspect_storage(storage: &impl StorageBackend) -> Result<Found> {
    let failed = |error| Error::Io(Box::new(Context::new("while reading the storage's length").because(error)));
    inspect(None, storage.len().map_err(failed)?, |bytes| storage.read(0, bytes))
}

/// Returns whether this is the table with the layout version.
pub(super) fn is_mark(name: &str) -> bool {
    name == MARK.name()
}

/// Writes the layout version of a new database.
pub(super) fn write_mark(transaction: &WriteTransaction) -> Result<()> {
    let mut table = transaction.open_table(MARK).map_err(error::storage)?;
    table.insert((), VERSION).map_err(error::storage)?;
    Ok(())
}

/// Fails unless an existing database has the layout version that this version of Slate reads.
pub(super) fn check_mark(transaction: &ReadTransaction, path: Option<&Path>) -> Result<()> {
    let foreign = || Error::WrongFormat(Box::new(at(path, Context::new("a redb file that Slate did not create"))));
    let table = match transaction.open_table(MARK) {
        Ok(table) => table,
        Err(TableError::Storage(error)) => return Err(error::storage(error)),
        Err(_) => return Err(foreign()),
    };
    let version = table.get(()).map_err(|error: StorageError| error::storage(error))?;
    match version.map(|version| version.value()) {
        None => Err(foreign()),
        Some(VERSION) => Ok(()),
        Some(version) => {
            let detail = format!("the data have layout version {version}, and this version of Slate reads {VERSION}");
            Err(Error::NewerVersion(Box::new(at(path, Context::new(detail)))))
        }
    }
}

/// Returns whether a database has no tables. Slate then creates its own in it.
pub(super) fn is_blank(transaction: &ReadTransaction) -> Result<bool> {
    let tables = transaction.list_tables().map_err(error::storage)?.count();
    let multimaps = transaction.list_multimap_tables().map_err(error::storage)?.count();
    Ok(tables + multimaps == 0)
}

fn at(path: Option<&Path>, context: Context) -> Context {
    match path {
        Some(path) => context.at(path),
        None => context,
    }
}
