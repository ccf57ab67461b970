use slate_store::{Keyspace, Transaction, TransactionExt as _, View};

use super::{CATALOG, damaged, keys};
use crate::Result;

/// The progress of an index build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BuildPosition {
    /// The number of documents that have been read.
    pub(crate) read: u64,
    /// The record key of the last of them; empty before the first.
    pub(crate) after: Vec<u8>,
}

impl BuildPosition {
    /// Reads the position of the build of the index in `keyspace`; the start if none is stored.
    pub(crate) fn load(view: &impl View, keyspace: Keyspace) -> Result<Self> {
        let Some(bytes) = view.get(CATALOG, &keys::build(keyspace), <[u8]>::to_vec)? else {
            return Ok(Self::default());
        };
        let (read, after) = bytes.split_first_chunk().ok_or_else(|| damaged("the position of an index build"))?;
        Ok(Self { read: u64::from_be_bytes(*read), after: after.to_vec() })
    }

    /// Stores the position under its own key, because it changes with every round, and a new version of the catalog
    /// would make every reader parse it and conflict with other changes.
    pub(crate) fn store(&self, transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
        let value = [&self.read.to_be_bytes()[..], &self.after].concat();
        Ok(transaction.put(CATALOG, &keys::build(keyspace), &value)?)
    }

    /// Deletes the position when the build ends.
    pub(crate) fn forget(transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
        Ok(transaction.delete(CATALOG, &keys::build(keyspace))?)
    }
}
