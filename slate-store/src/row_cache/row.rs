use std::{mem, sync::Arc};

use quick_cache::Weighter;

use crate::{Keyspace, moments::Moment};

/// A value that is kept.
#[derive(Clone)]
pub(crate) struct Row {
    /// The keyspace's number, the key and the value.
    bytes: Arc<[u8]>,
    /// Where the value begins.
    value: usize,
    /// Of the snapshot that it was read from.
    pub(super) moment: Moment,
}

impl Row {
    pub(super) fn new(keyspace: Keyspace, key: &[u8], value: &[u8], moment: Moment) -> Self {
        let keyspace = keyspace.0.to_be_bytes();
        let bytes = [&keyspace[..], key, value].concat();
        Self { bytes: bytes.into(), value: keyspace.len() + key.len(), moment }
    }

    pub(super) fn is_of(&self, keyspace: Keyspace, key: &[u8]) -> bool {
        let whole = self.bytes.get(..self.value).unwrap_or_default();
        whole.split_first_chunk().is_some_and(|(number, own)| *number == keyspace.0.to_be_bytes() && own == key)
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.bytes.get(self.value..).unwrap_or_default()
    }
}

/// About what a row takes.
#[derive(Clone)]
pub(super) struct RowWeight;

/// Besides its bytes: itself and its hash, in a table that is half to all of full, and what an allocation takes.
const OVERHEAD: usize = mem::size_of::<Row>() + 128;

impl Weighter<u64, Row> for RowWeight {
    fn weight(&self, _: &u64, row: &Row) -> u64 {
        u64::try_from(row.bytes.len() + OVERHEAD).unwrap_or(u64::MAX)
    }
}
