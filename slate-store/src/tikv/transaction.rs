use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use tikv_client::TimestampExt;

use super::{
    cluster::Cluster,
    commit::{self, Guarded},
    snapshot::{Seen, TikvSnapshot},
    store::CAPABILITIES,
};
use crate::{
    Bounds, Durability, Error, Guard, Keyspace, LastStage, LastWrites, OptimisticView, Result, TooLarge, Transaction,
    Version, Write, optimistic::WriteSet,
};

/// An open write transaction. Holds its writes and guards in memory until it commits.
pub struct TikvTransaction {
    pub(super) snapshot: TikvSnapshot,
    pub(super) begun: tikv_client::Transaction,
    pub(super) writes: Writes,
    pub(super) guards: Vec<Guarded>,
    pub(super) seen: Arc<Seen>,
}

/// The writes of a transaction, and their charge against its limit.
#[derive(Default)]
pub(super) struct Writes {
    pub(super) set: WriteSet,
    charged: usize,
    size: CommitSize,
}

/// The bytes that a commit sends: of keys, and of keys and values.
#[derive(Clone, Copy, Default)]
struct CommitSize {
    keys: usize,
    all: usize,
}

/// Maximum size of a transaction in bytes; see [`LEAST_CHARGE`].
pub(super) const MAX_TRANSACTION_BYTES: usize = 64 << 20;

/// Minimum bytes that a written or guarded key counts: limits a transaction to about 32,000 keys, which commit within seconds.
const LEAST_CHARGE: usize = 2 << 10;

/// Maximum number of short keys that a transaction may write or guard, less a reserve for those that the commit adds.
pub(super) const MAX_TRANSACTION_KEYS: usize = MAX_TRANSACTION_BYTES / LEAST_CHARGE - 1_024;

/// Maximum bytes of key lists in the requests of a commit. The client sends the list of all keys with each part of a commit, so the bytes are those
/// of the list times the number of parts, and the client may hold all parts in memory if nodes are slow. Allows for 32,000 keys of 50 bytes with
/// values of 100 bytes.
const MAX_LISTED: usize = 1 << 30;

/// Size of a part of a commit, and overhead per key, in bytes.
pub(super) const PART: usize = 16 << 10;
const KEY_OVERHEAD: usize = 32;

impl CommitSize {
    fn with(self, key: usize, value: usize) -> Self {
        let key = key + KEY_OVERHEAD;
        Self { keys: self.keys + key, all: self.all + key + value }
    }

    fn listed(self) -> usize {
        self.keys.saturating_mul(self.all / PART + 1)
    }
}

impl Writes {
    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()> {
        CAPABILITIES.check_sizes(writes)?;
        self.charge(writes.iter().map(|(key, value)| (key.len(), value.map_or(0, <[u8]>::len))))?;
        if !writes.is_empty() {
            self.set.write(keyspace, writes);
        }
        Ok(())
    }

    /// Charges keys and values of these lengths; charges nothing and fails if they exceed a limit.
    fn charge(&mut self, added: impl Iterator<Item = (usize, usize)>) -> Result<()> {
        let (mut charged, mut size) = (self.charged, self.size);
        for (key, value) in added {
            charged = charged.saturating_add(LEAST_CHARGE.max(key + value));
            size = size.with(key, value);
        }
        let within = |what, size, limit| match size <= limit {
            true => Ok(()),
            false => Err(Error::TooLarge(Box::new(TooLarge { what, size, limit }))),
        };
        within("transaction", charged, MAX_TRANSACTION_BYTES)?;
        within("list of keys of a transaction, for all parts of its commit,", size.listed(), MAX_LISTED)?;
        (self.charged, self.size) = (charged, size);
        Ok(())
    }
}

impl LastWrites for Writes {
    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()> {
        Writes::write(self, keyspace, writes)
    }
}

impl TikvTransaction {
    /// Creates an empty transaction. `opened` must not be later than the time of its timestamp.
    pub(super) fn new(cluster: Arc<Cluster>, begun: tikv_client::Transaction, opened: Instant) -> Self {
        let seen = Arc::new(Mutex::default());
        let snapshot = TikvSnapshot::new(cluster, begun.start_timestamp().version(), opened, Some(Arc::clone(&seen)));
        Self { snapshot, begun, writes: Writes::default(), guards: Vec::new(), seen }
    }
}

impl Transaction for TikvTransaction {
    type View<'t> = OptimisticView<'t, TikvSnapshot>;

    fn view(&self) -> OptimisticView<'_, TikvSnapshot> {
        OptimisticView::new(&self.snapshot, &self.writes.set)
    }

    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()> {
        self.writes.write(keyspace, writes)
    }

    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        self.writes.set.delete_range(keyspace, bounds);
        Ok(())
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8], guard: Guard) -> Result<()> {
        CAPABILITIES.check_sizes(&[(key, None)])?;
        // A guarded key is a key of the commit, as a written one is.
        self.writes.charge(std::iter::once((key.len(), 0)))?;
        self.guards.push(Guarded { keyspace, key: key.into(), guard });
        Ok(())
    }

    /// Every commit is on the devices of a majority of nodes when it returns, whatever its durability.
    fn commit(self, _: Durability) -> Result<Version> {
        commit::commit(self)
    }

    /// Calls `last` with the version of the transaction's view, because the cluster chooses the version of the commit after all writes were sent.
    /// The writes of `last` count against the transaction's size limit.
    fn commit_with(mut self, _: Durability, last: LastStage<'_>) -> Result<Version> {
        last(Version(self.snapshot.at), &mut self.writes)?;
        commit::commit(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_long_keys_are_refused_and_as_many_short_ones_or_few_large_values_are_not() {
        let put = |keys: u32, key: usize, value: usize| {
            let (mut writes, value) = (Writes::default(), vec![1; value]);
            (0..keys).try_for_each(|number| {
                let mut key = vec![0; key];
                key[..4].copy_from_slice(&number.to_be_bytes());
                writes.write(Keyspace(1), &[(&key, Some(&value))])
            })
        };
        put(32_000, 50, 100).unwrap();
        put(3_000, 1_000, 10).unwrap();
        put(1_000, 50, 60_000).unwrap();
        let error = put(16_000, 1_000, 10).unwrap_err();
        assert!(matches!(&error, Error::TooLarge(excess) if excess.what.contains("list of keys")), "{error}");
    }
}
