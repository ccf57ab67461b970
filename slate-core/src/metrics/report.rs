use std::collections::BTreeMap;

use slate_store::OldestSnapshot;

use super::{Histogram, OperationKind, counters::Counters};

/// Counts of a database's work since it was opened; see [`Database::metrics`](crate::Database::metrics).
///
/// The numbers only grow, except for the oldest snapshot. They are read while other threads work, so they are not one consistent state.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// The operations by kind. Every kind has an entry.
    pub operations: BTreeMap<OperationKind, OperationMetrics>,
    /// Rows that reads returned. A count returns one row; distinct values are one row each.
    pub rows_returned: u64,
    /// The bytes of the rows that the caller has read.
    pub bytes_returned: u64,
    /// Documents that writes inserted, changed or deleted, also in transactions that were rolled back.
    pub documents_written: u64,
    /// Keys that plans read: index entries, `_id`s that were looked up, and keys that were only counted.
    pub keys_examined: u64,
    /// Documents that plans read.
    pub documents_examined: u64,
    /// Operations and commits that failed with a conflict, whether they were retried or not.
    pub conflicts: u64,
    /// Attempts that followed a conflict: of single writes, and of [`Database::transact`](crate::Database::transact).
    pub retries: u64,
    /// Documents and index entries that were read by key from the cache in front of a store on disk. Always 0 in memory.
    pub cache_hits: u64,
    /// Documents and index entries that were read by key from the store because the cache did not have them. Reads of
    /// many keys bypass the cache and do not count.
    pub cache_misses: u64,
    /// The bytes that the store read from its files, because its cache did not have them. `None` in memory and on RocksDB, which
    /// counts them for one query only
    /// ([`ExecutionStats::storage_bytes`](crate::ExecutionStats::storage_bytes)).
    pub storage_bytes: Option<u64>,
    /// Round trips to the machines of a store on a network; simultaneous ones count as one. `None` for other stores.
    pub round_trips: Option<u64>,
    /// The estimated number of requests in these round trips; one round trip can contain several. `None` for stores that do not count them.
    pub requests: Option<u64>,
    /// How often the list of collections and indexes was read from the store again. This happens after a change of the
    /// list, not with each call.
    pub catalog_reads: u64,
    /// Sorted runs that were written to temporary files because a memory limit was reached.
    pub spills: u64,
    /// Bytes written to temporary files.
    pub spilled_bytes: u64,
    /// The oldest commit that an open snapshot, cursor or transaction of this process reads, with its age and what it retains.
    /// `None` if all read the last commit.
    pub oldest_snapshot: Option<OldestSnapshot>,
}

/// The operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperationMetrics {
    /// Finished operations, also those that failed. The statements of a transaction count one by one; a write that is
    /// retried counts with each attempt.
    pub calls: u64,
    /// Operations that failed, and writes that rejected some of their documents.
    pub failures: u64,
    /// How long operations took. A read ends with its last row, or when its cursor is dropped. For a blocking cursor this includes the time that the
    /// caller spends between rows, because reading the clock for each row would cost too much; a caller that waits there can call
    /// [`Cursor::pause`](crate::Cursor::pause). Async cursors pause between batches. A write ends before its commit, which is an operation of its
    /// own. Only one of 32 calls of [`FindById`](OperationKind::FindById) per thread is measured, because reading the clock would slow it down.
    pub latency: Histogram,
}

impl Metrics {
    /// Returns the operations of one kind.
    pub fn operation(&self, kind: OperationKind) -> OperationMetrics {
        self.operations.get(&kind).cloned().unwrap_or_default()
    }

    /// Returns the number of successful commits.
    pub fn commits(&self) -> u64 {
        let commits = self.operation(OperationKind::Commit);
        commits.calls.saturating_sub(commits.failures)
    }

    /// Adds the counters of a thread.
    pub(super) fn add(&mut self, counters: &Counters) {
        for (kind, sum) in &mut self.operations {
            let operation = counters.of(*kind);
            sum.calls += operation.calls.get();
            sum.failures += operation.failures.get();
            sum.latency.add(&operation.time);
        }
        self.rows_returned += counters.rows.get();
        self.bytes_returned += counters.bytes.get();
        self.documents_written += counters.written.get();
        self.keys_examined += counters.keys.get();
        self.documents_examined += counters.documents.get();
        self.conflicts += counters.conflicts.get();
        self.retries += counters.retries.get();
        self.spills += counters.spills.get();
        self.spilled_bytes += counters.spilled_bytes.get();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            operations: OperationKind::ALL.map(|kind| (kind, OperationMetrics::default())).into(),
            rows_returned: 0,
            bytes_returned: 0,
            documents_written: 0,
            keys_examined: 0,
            documents_examined: 0,
            conflicts: 0,
            retries: 0,
            cache_hits: 0,
            cache_misses: 0,
            storage_bytes: None,
            round_trips: None,
            requests: None,
            catalog_reads: 0,
            spills: 0,
            spilled_bytes: 0,
            oldest_snapshot: None,
        }
    }
}
