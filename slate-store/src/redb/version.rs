//! The version of the last commit. It is stored with the commit.

use ::redb::{ReadTransaction, TableDefinition, TableError, WriteTransaction};

use super::{error, table::Bytes};
use crate::{Context, Error, Result, Version};

/// The version, big-endian, under the empty key. A database without this table is at version 0.
const VERSION: TableDefinition<'_, Bytes, Bytes> = TableDefinition::new("version");

/// Returns the version of the commit that a transaction reads.
pub(super) fn read(transaction: &ReadTransaction) -> Result<Version> {
    let table = match transaction.open_table(VERSION) {
        Ok(table) => table,
        Err(TableError::TableDoesNotExist(_)) => return Ok(Version(0)),
        Err(error) => return Err(error::storage(error)),
    };
    let Some(bytes) = table.get(&[][..]).map_err(error::storage)? else { return Ok(Version(0)) };
    let corrupt = |_| Error::Corrupt(Box::new(Context::new("the version of the last commit is not a number")));
    Ok(Version(u64::from_be_bytes(bytes.value().try_into().map_err(corrupt)?)))
}

/// Stores `version` as the version of the transaction's commit.
pub(super) fn write(transaction: &WriteTransaction, version: Version) -> Result<()> {
    let mut table = transaction.open_table(VERSION).map_err(error::storage)?;
    table.insert(&[][..], &version.0.to_be_bytes()[..]).map_err(error::storage)?;
    Ok(())
}
