//! Commits a transaction of the client, and rolls it back if that fails.
//!
//! ```text
//!                    ┌─ made ──────────────────────────────────────────▶ its timestamp
//! writes ─▶ commit ──┼─ refused ───────────────▶ undo ─┬─ confirmed ───▶ Conflict
//!                    ├─ undecided ──────▶ settle ─▶ ┘  └─ not confirmed ▶ OutcomeUnknown
//!                    └─ no answer ────────────────────────────────────▶ OutcomeUnknown
//! ```
//!
//! A commit is undecided when a node was too busy for its part or aborted it. In the second phase, such a node may have committed the first key,
//! which decides about all others. Repeating the commit would give the others a later timestamp. Undoing the transaction could remove them from a
//! commit that was made, because nodes undo their keys independently. So it is *settled*: if the first key was written and is not committed, it is
//! rolled back for good; then all others follow it. If the first key was never written, no commit was sent, because a commit follows the writes of
//! all keys, and nothing has to be decided. After that, undoing either succeeds for all keys or is refused for all.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::Ordering,
    task::Poll,
    time::Instant,
};

use tikv_client::{
    Backoff, Error as ClientError, ProtoLockInfo, Timestamp, TimestampExt, Transaction, transaction::Mutation,
};
use tokio::time::timeout;

use super::{
    cluster::{Cluster, LEAST_TIME, LONGEST_PAUSE, persist},
    error::{self, CommitFailure, ReadFailure},
    regions::Regions,
    transaction::PART,
};

/// The round trips of a commit in two phases.
const TWO_PHASES: u64 = 3;

/// The requests of a commit, as the client divides it: into parts of [`PART`] bytes of each region.
#[derive(Clone, Copy)]
struct Requests {
    /// Requests that write keys.
    writes: u64,
    /// Requests that commit the written keys except for the first.
    commits: u64,
}

impl Requests {
    fn of(regions: &Regions, mutations: &[Mutation], locks: &[Vec<u8>]) -> Self {
        let value = |mutation: &Mutation| match mutation {
            Mutation::Put(_, value) => value.len(),
            Mutation::Delete(_) => 0,
        };
        let written = mutations.iter().map(|mutation| (<&[u8]>::from(mutation.key()), value(mutation)));
        let mut keys: Vec<(&[u8], usize)> = written.chain(locks.iter().map(|key| (&key[..], 0))).collect();
        keys.sort_unstable();
        // The parts of all regions, estimated as if they were one; `spread` adds a part for each region.
        let parts = |bytes: usize| u64::try_from(bytes / PART).unwrap_or(u64::MAX);
        let spread = regions.spread(keys.iter().map(|(key, _)| *key));
        let all: usize = keys.iter().map(|(key, value)| key.len() + value).sum();
        let listed: usize = keys.iter().map(|(key, _)| key.len()).sum();
        let others = if keys.len() > 1 { spread + parts(listed) } else { 0 };
        Self { writes: spread + parts(all), commits: others }
    }

    /// Returns the number of requests of a commit in two phases, including those for the timestamp and for the first key.
    fn in_two_phases(self) -> u64 {
        self.writes + 2 + self.commits
    }
}

impl Cluster {
    /// Commits mutations, and locks of other keys. Returns the timestamp of the commit, `None` if there is nothing to commit.
    ///
    /// Waits up to four times the patience of a read, because a large commit takes long by itself. After that the outcome is unknown. If the commit
    /// fails, settles and undoes it, within the patience each. After a certain failure nothing of the transaction is left.
    pub(super) async fn commit(
        &self,
        begun: &mut Transaction,
        mutations: Vec<Mutation>,
        locks: Vec<Vec<u8>>,
    ) -> Result<Option<u64>, CommitFailure> {
        let began = begun.start_timestamp();
        let keys: Vec<Vec<u8>> =
            mutations.iter().map(|mutation| mutation.key().clone().into()).chain(locks.iter().cloned()).collect();
        let requests = Requests::of(&self.regions, &mutations, &locks);
        let committed = async {
            begun.batch_mutate(mutations).await?;
            begun.lock_keys(locks).await?;
            self.attempt(begun, requests).await
        };
        let failed = match committed.await {
            Ok(at) => return Ok(at.map(|at| at.version())),
            Err(failed) => failed,
        };
        if let ClientError::OnePcFailure = failed {
            // Nodes that do not commit in one phase leave locks, and the client cannot commit them.
            self.in_one_phase.store(false, Ordering::Relaxed);
        }
        // The client repeated the commit, because the answer to the first one was lost.
        if let Some(at) = error::own_commit(&failed, began.version()) {
            return Ok(Some(at));
        }
        let failure = match error::is_undecided(&failed) {
            false => error::of_commit(failed, &self.layout),
            true => match self.settle(began, keys).await {
                Ok(()) => error::of_settled(failed),
                Err(_) => error::of_commit(failed, &self.layout),
            },
        };
        Err(self.undo(begun, failure).await)
    }

    /// Removes the locks of a refused transaction. Nodes refuse that for a committed one. Returns the failure; its outcome is unknown if the locks
    /// were not removed.
    ///
    /// Does nothing after an unknown outcome: removing locks could undo a part of a commit.
    async fn undo(&self, begun: &mut Transaction, mut failure: CommitFailure) -> CommitFailure {
        if failure.is_certain
            && let Err(refused) = self.roll_back(begun).await
        {
            let refused = error::of_request(refused, "the transaction was not undone");
            failure.error = error::not_undone(failure.error, refused);
            failure.is_certain = false;
        }
        failure
    }

    async fn roll_back(&self, begun: &mut Transaction) -> Result<(), ClientError> {
        let (start, patience) = (Instant::now(), self.options.patience.max(LEAST_TIME));
        loop {
            self.count_request();
            let left = patience.saturating_sub(start.elapsed()).max(LEAST_TIME);
            match timeout(left, begun.rollback()).await {
                Err(_) => return Err(ClientError::StringError(format!("no answer within {patience:?}"))),
                // A busy node, or one without an elected leader.
                Ok(Err(failed)) if error::of_read(&failed) == ReadFailure::Transient && start.elapsed() < patience => {
                    tokio::time::sleep(LONGEST_PAUSE).await;
                }
                Ok(undone) => return undone,
            }
        }
    }

    /// Decides about a transaction by its first key, and makes all others follow it.
    async fn settle(&self, began: Timestamp, keys: Vec<Vec<u8>>) -> Result<(), ClientError> {
        let Some(primary) = keys.first().cloned() else { return Ok(()) };
        // A time to live of 0 requests a decision at once. The client resolves one lock of each region, and with it all of that region.
        let lock = |key| ProtoLockInfo {
            key,
            primary_lock: primary.clone(),
            lock_version: began.version(),
            ..ProtoLockInfo::default()
        };
        let locks: Vec<ProtoLockInfo> = keys.into_iter().map(lock).collect();
        let resolve = async || {
            self.count_request();
            match self.client.resolve_locks(locks.clone(), began.clone(), Backoff::no_backoff()).await {
                // The first key was never written, so no commit was sent. The client would have the node record the rollback of the key, but
                // version 0.4 expects this answer as `TxnNotFound`, and receives it within `MultipleKeyErrors`. Undoing all keys, which follows,
                // makes that record.
                Err(failed) if error::is_unwritten(&failed) => Ok(Vec::new()),
                undecided => undecided,
            }
        };
        let undecided = persist(self.options.patience, resolve).await?;
        if undecided.is_empty() { Ok(()) } else { Err(ClientError::ResolveLockError(undecided)) }
    }

    async fn attempt(&self, begun: &mut Transaction, requests: Requests) -> Result<Option<Timestamp>, ClientError> {
        let longest = self.options.patience.saturating_mul(4).max(LEAST_TIME);
        let late = |_| {
            let late = ClientError::StringError(format!("no answer within {longest:?}"));
            ClientError::UndeterminedError(Box::new(late))
        };
        timeout(longest, self.commit_when_ready(begun, requests)).await.map_err(late)?
    }

    /// Retries the commit while nodes reply that they are not ready and have written nothing.
    async fn commit_when_ready(
        &self,
        begun: &mut Transaction,
        requests: Requests,
    ) -> Result<Option<Timestamp>, ClientError> {
        loop {
            let (mut waits, mut commit) = (0, pin!(begun.commit()));
            // Each step that a commit waits for is a round trip: its writes; if these did not commit it, a timestamp and the commit of the first
            // key. Writes to several regions are concurrent, and can wake the task several times.
            let committed = poll_fn(|context| {
                let poll = commit.as_mut().poll(context);
                waits += u64::from(matches!(poll, Poll::Pending));
                poll
            });
            let committed = committed.await;
            let round_trips = waits.clamp(1, TWO_PHASES);
            self.count(round_trips, if round_trips == 1 { requests.writes } else { requests.in_two_phases() });
            match committed {
                Err(failed) if error::is_not_ready(&failed) => tokio::time::sleep(LONGEST_PAUSE).await,
                committed => return committed,
            }
        }
    }
}
