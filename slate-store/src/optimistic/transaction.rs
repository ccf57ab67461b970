use std::{collections::BTreeSet, sync::Arc};

use super::{
    changes::Changes,
    commit_log::{Access, Conflict, Others},
    store::Shared,
    view::OptimisticView,
    write_set::{WriteSet, bytes},
};
use crate::{
    Bounds, Change, Context, Durability, Error, Guard, Keyspace, LastStage, LocalStore, Result, TooLarge, Transaction,
    Version, Write,
};

/// An open write transaction of an [`Optimistic`](super::Optimistic) store: a snapshot, and its writes and guards in memory.
///
/// Any number of transactions may be open at once. They may be moved to other threads.
pub struct OptimisticTransaction<L: LocalStore> {
    snapshot: L::Snapshot,
    accesses: Accesses,
    locking: Locking,
    began: Began<L>,
}

/// Counts a transaction as open in the log. Dropping this removes it.
pub(super) struct Began<L: LocalStore> {
    shared: Arc<Shared<L>>,
    base: Version,
}

impl<L: LocalStore> Began<L> {
    /// The caller must have opened the transaction in the log.
    pub(super) fn new(shared: &Arc<Shared<L>>, base: Version) -> Self {
        Self { shared: Arc::clone(shared), base }
    }
}

impl<L: LocalStore> Drop for Began<L> {
    fn drop(&mut self) {
        self.shared.log().close(self.base);
    }
}

/// What a transaction wrote and guarded.
#[derive(Default)]
struct Accesses {
    writes: WriteSet,
    guards: Vec<(Keyspace, Box<[u8]>, Access)>,
}

/// What a commit does if another thread has the commit lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Locking {
    Wait,
    /// The commit fails with a conflict.
    Try,
}

impl<L: LocalStore> OptimisticTransaction<L> {
    pub(super) fn new(snapshot: L::Snapshot, began: Began<L>, locking: Locking) -> Self {
        Self { snapshot, accesses: Accesses::default(), locking, began }
    }

    fn finish(self, durability: Durability, last: Option<LastStage<'_>>) -> Result<Version> {
        let Self { snapshot, accesses, locking, began } = self;
        // Before the lock is taken: freeing what only this snapshot holds can take long, and the store can reuse its space for this commit.
        drop(snapshot);
        let base = began.base;
        if last.is_none() && accesses.is_empty() {
            return Ok(base);
        }
        let shared = &*Arc::clone(&began.shared);
        let durability = if shared.capabilities.persistent { durability } else { Durability::Deferred };
        let entered = match locking {
            Locking::Wait => Some(shared.queue.enter(durability)),
            Locking::Try => shared.queue.try_enter(),
        };
        let entered = entered.ok_or_else(|| Error::Conflict(Box::new("another commit is in progress".into())))?;
        shared.queue.check()?;
        let is_latest = shared.log().is_latest(base);
        if !is_latest {
            accesses.check(shared, base)?;
        }
        if last.is_none() && !accesses.leave_a_trace() {
            return Ok(base);
        }
        let made = entered.durability(durability);
        let mut streamed = Streamed::default();
        let version = match last {
            None => shared.apply(Changes::of(&accesses.writes), made)?,
            Some(stage) => {
                let mut check = |keyspace, writes: &[Write<'_>]| {
                    shared.capabilities.check_sizes(writes)?;
                    streamed.check(shared, (!is_latest).then_some(base), keyspace, writes)
                };
                shared.apply(Changes::with_last(&accesses.writes, stage, &mut check), made)?
            }
        };
        // Ends this transaction first: the log records a commit only for open transactions.
        drop(began);
        // Transactions that begin from now on see the commit, so they cannot conflict with it.
        if shared.log().committed(version) == Others::Open {
            accesses.record(shared, version);
            streamed.record(shared, version);
        }
        if shared.capabilities.persistent {
            entered.committed(version, made);
        }
        drop(entered);
        if durability == Durability::Sync && made == Durability::Deferred {
            shared.wait_durable(version)?;
        }
        Ok(version)
    }
}

impl Accesses {
    fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.guards.is_empty()
    }

    /// Whether there is a write or an exclusive guard: without one, the commit changes nothing for others.
    fn leave_a_trace(&self) -> bool {
        !self.writes.is_empty() || self.guards.iter().any(|(.., access)| *access == Access::Guarded)
    }

    /// Fails if a commit after `base` conflicts with these accesses.
    fn check<L: LocalStore>(&self, shared: &Shared<L>, base: Version) -> Result<()> {
        let check = |keyspace, accesses: &mut dyn Iterator<Item = (&[u8], Access)>| {
            let log = shared.log();
            log.conflict(base, keyspace, accesses).map_or(Ok(()), |found| Err(refusal(keyspace, &found)))
        };
        self.writes.each(|keyspace, change| match change {
            Change::Writes(writes) => check(keyspace, &mut exclusive(writes)),
            // The range is deleted as it is at the commit, so earlier commits cannot conflict with it.
            Change::DeleteRange(_) => Ok(()),
        })?;
        self.guards
            .iter()
            .try_for_each(|(keyspace, key, access)| check(*keyspace, &mut std::iter::once((&**key, *access))))
    }

    /// Records the accesses of the commit `version`.
    fn record<L: LocalStore>(&self, shared: &Shared<L>, version: Version) {
        // The closure only returns `Ok`.
        let _ = self.writes.each(|keyspace, change| {
            let mut log = shared.log();
            match change {
                Change::Writes(writes) => log.record(version, keyspace, exclusive(writes)),
                Change::DeleteRange(bounds) => log.record_range(version, keyspace, bounds),
            }
            Ok(())
        });
        let mut log = shared.log();
        for (keyspace, key, access) in &self.guards {
            log.record(version, *keyspace, [(&**key, *access)]);
        }
    }
}

fn exclusive<'w>(writes: &[Write<'w>]) -> impl Iterator<Item = (&'w [u8], Access)> {
    writes.iter().map(|(key, _)| (*key, Access::Exclusive))
}

/// Maximum number of keys of a last stage that are recorded one by one; they take 2 MiB.
const MAX_HASHES: usize = 1 << 18;

/// The keys that the last stage of a commit has written.
#[derive(Default)]
struct Streamed {
    hashes: Vec<u64>,
    /// Keyspaces that are recorded as a whole, because too many keys were written.
    whole: BTreeSet<Keyspace>,
}

impl Streamed {
    /// Fails if a commit after `base` conflicts with these writes; without `base` nothing can conflict. Stores their keys for
    /// [`record`](Self::record).
    fn check<L: LocalStore>(
        &mut self,
        shared: &Shared<L>,
        base: Option<Version>,
        keyspace: Keyspace,
        writes: &[Write<'_>],
    ) -> Result<()> {
        let log = shared.log();
        if let Some(found) = base.and_then(|base| log.conflict(base, keyspace, exclusive(writes))) {
            return Err(refusal(keyspace, &found));
        }
        if self.hashes.len() + writes.len() > MAX_HASHES {
            self.whole.insert(keyspace);
        } else if !self.whole.contains(&keyspace) {
            self.hashes.extend(writes.iter().map(|(key, _)| log.hash(keyspace, key)));
        }
        Ok(())
    }

    /// Records the keys as written by the commit `version`.
    fn record<L: LocalStore>(&self, shared: &Shared<L>, version: Version) {
        let mut log = shared.log();
        self.hashes.iter().for_each(|hash| log.record_hash(version, *hash, Access::Exclusive));
        self.whole.iter().for_each(|keyspace| log.record_range(version, *keyspace, Bounds::ALL));
    }
}

fn refusal(keyspace: Keyspace, conflict: &Conflict<'_>) -> Error {
    Error::Conflict(Box::new(match conflict {
        Conflict::Forgotten => "it was open for so long that the record of concurrent commits was discarded".into(),
        Conflict::Key(key) => {
            Context::new("another transaction first committed a change to the same key").on(keyspace, key)
        }
        Conflict::Range(key) => {
            Context::new("another transaction first committed a change to a range with this key").on(keyspace, key)
        }
    }))
}

impl<L: LocalStore> Transaction for OptimisticTransaction<L> {
    type View<'t> = OptimisticView<'t, L::Snapshot>;

    fn view(&self) -> OptimisticView<'_, L::Snapshot> {
        OptimisticView::new(&self.snapshot, &self.accesses.writes)
    }

    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()> {
        let capabilities = &self.began.shared.capabilities;
        capabilities.check_sizes(writes)?;
        if writes.is_empty() {
            return Ok(());
        }
        let size = self.accesses.writes.bytes().saturating_add(bytes(writes));
        if let Some(limit) = capabilities.max_transaction_bytes.filter(|limit| size > *limit) {
            return Err(Error::TooLarge(Box::new(TooLarge { what: "transaction", size, limit })));
        }
        self.accesses.writes.write(keyspace, writes);
        Ok(())
    }

    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        self.accesses.writes.delete_range(keyspace, bounds);
        Ok(())
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8], guard: Guard) -> Result<()> {
        self.accesses.guards.push((keyspace, key.into(), guard.into()));
        Ok(())
    }

    fn commit(self, durability: Durability) -> Result<Version> {
        self.finish(durability, None)
    }

    fn commit_with(self, durability: Durability, last: LastStage<'_>) -> Result<Version> {
        self.finish(durability, Some(last))
    }
}
