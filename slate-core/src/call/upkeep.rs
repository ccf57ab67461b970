//! Work after commits: drops keyspaces that nothing refers to, and gathers statistics.
//!
//! If only this process writes to the database, both are done after the commit, before its call returns. On a store that several processes write to,
//! a background thread does each of them, in one process at a time, which holds a lease of it ([`commit::Leases`](crate::commit::Leases)). A process
//! that finds definitions changed by another one looks for pending drops, and executes those whose lease has expired.

use std::{
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::Duration,
};

use slate_store::{Durability, Keyspace, Store, Transaction, crash_point};

use super::{backend::Backend, lease::HeldLeases};
use crate::{
    Result,
    catalog::{self, Catalog, CollectionInfo, CollectionStatistics, LeaseAttempt, LeasedWork},
    commit::LEASE_RENEWED_EVERY,
    metrics::trace,
    write::StaleCollection,
};

/// Maximum number of keys of a keyspace that are read after a commit that made its statistics stale, unless [`MAX_KEYS_PER_RECORD`] allows more.
/// Bounds the latency that this adds to the commit. The statistics of larger keyspaces are extended, see [`CollectionStatistics::gather`].
const MAX_KEYS: u64 = 65_536;

/// Number of keys that may be read per record by which the commit changed the collection's size: the work stays proportional to the commit.
const MAX_KEYS_PER_RECORD: u64 = 4;

/// The queue of collections whose statistics a background thread gathers, on a store that several processes write to.
#[derive(Default)]
pub(super) struct StaleQueue {
    waiting: Mutex<Waiting>,
    /// Held while this process writes statistics: two of its threads would conflict.
    writing: Mutex<()>,
}

#[derive(Default)]
struct Waiting {
    collections: Vec<StaleCollection>,
    /// Whether the thread runs. It ends when the queue is empty.
    is_served: bool,
}

impl StaleQueue {
    /// No code under this lock can panic between two dependent updates.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds collections. Returns whether the caller must start the thread.
    fn add(&self, stale: &[StaleCollection]) -> bool {
        let mut waiting = self.lock();
        for added in stale {
            waiting.collections.retain(|collection| collection.records != added.records);
            waiting.collections.push(*added);
        }
        !mem::replace(&mut waiting.is_served, true)
    }

    /// Removes and returns a collection; `None` if the queue is empty, which ends the thread.
    fn next(&self) -> Option<StaleCollection> {
        let mut waiting = self.lock();
        let next = waiting.collections.pop();
        waiting.is_served = next.is_some();
        next
    }

    fn remove(&self, records: Keyspace) {
        self.lock().collections.retain(|collection| collection.records != records);
    }

    /// Empties the queue, because no thread could be started. The statistics stay stale until a later commit.
    fn clear(&self) {
        *self.lock() = Waiting::default();
    }
}

/// The state of the background thread that executes pending drops, on a store that several processes write to.
#[derive(Default)]
pub(super) struct DropQueue {
    state: Mutex<DropQueueState>,
    added: Condvar,
}

#[derive(Default)]
struct DropQueueState {
    /// Whether the thread runs. It ends when no drops are pending.
    is_served: bool,
    /// Whether there may be new drops since the thread last looked.
    is_outdated: bool,
}

impl DropQueue {
    /// No code under this lock can panic between two dependent updates.
    fn lock(&self) -> MutexGuard<'_, DropQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the thread look for pending drops again. Returns whether the caller must start it.
    fn add(&self) -> bool {
        let mut state = self.lock();
        state.is_outdated = true;
        self.added.notify_all();
        !mem::replace(&mut state.is_served, true)
    }

    /// Called before the thread looks for pending drops: it need look again only for drops that are added later.
    fn look(&self) {
        self.lock().is_outdated = false;
    }

    /// If drops remain, waits until it is time to try them again or new ones were added. Returns whether the thread continues.
    fn wait(&self, remain: bool) -> bool {
        let mut state = self.lock();
        if remain && !state.is_outdated {
            let waited = self.added.wait_timeout_while(state, LEASE_RENEWED_EVERY, |state| !state.is_outdated);
            state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
        state.is_served = remain || state.is_outdated;
        state.is_served
    }

    fn end(&self) {
        self.lock().is_served = false;
    }
}

/// Pending drops.
impl<S: Store> Backend<S> {
    /// Executes pending drops, on a store that several processes write to in the background. Drops that fail stay pending.
    pub(super) fn execute_drops(&self, pending: &[Keyspace]) {
        if pending.is_empty() {
            return;
        }
        if self.shared.capabilities.exclusive {
            // In a read-only database the drops stay pending.
            let _ = self.drop_keyspaces(pending, Duration::ZERO);
        } else {
            self.drop_beside();
        }
    }

    /// Executes pending drops on a background thread: on a store on a network a drop takes as long as inserting its keys took. Drops that fail, or
    /// that another process executes, are tried again until they are done, because that process may end before. When the database is closed, the
    /// thread finishes the current keyspace, ends and closes the store.
    pub(super) fn drop_beside(&self) {
        if !self.drops.add() {
            return;
        }
        let (backend, drops) = (self.this.clone(), Arc::clone(&self.drops));
        let drop_all = move || {
            while let Some(remain) = Self::drop_pending(&backend) {
                if !drops.wait(remain) {
                    return;
                }
            }
        };
        if thread::Builder::new().name("slate-drops".into()).spawn(drop_all).is_err() {
            // The drops stay pending until the next call.
            self.drops.end();
        }
    }

    /// Executes the pending drops that no other process executes. Returns whether some remain; `None` if the database was closed, which is checked
    /// before each keyspace.
    fn drop_pending(this: &Weak<Self>) -> Option<bool> {
        let pending = this.upgrade()?.find_pending_drops();
        let Ok(pending) = pending else { return Some(true) };
        let mut remain = false;
        for keyspace in pending {
            let backend = this.upgrade()?;
            remain |= match backend.take_lease(LeasedWork::Drop(keyspace)) {
                Ok(LeaseAttempt::Taken) => backend.drop_keyspaces(&[keyspace], Duration::ZERO).is_err(),
                Ok(LeaseAttempt::HeldByAnother) | Err(_) => true,
                Ok(LeaseAttempt::Done) => false,
            };
        }
        Some(remain)
    }

    fn find_pending_drops(&self) -> Result<Vec<Keyspace>> {
        self.drops.look();
        catalog::pending_drops(&self.store.snapshot()?)
    }

    /// Drops keyspaces, and removes them from the pending drops. Leases of them, which this process must hold where several write, are released if a
    /// drop fails.
    pub(super) fn drop_keyspaces(&self, keyspaces: &[Keyspace], wait: Duration) -> Result<()> {
        let works: Vec<LeasedWork> = keyspaces.iter().copied().map(LeasedWork::Drop).collect();
        let dropped = self.holding(&works, || {
            for &keyspace in keyspaces {
                self.shared.staleness.forget(keyspace);
                self.store.drop_keyspace(keyspace, wait)?;
            }
            Ok(())
        });
        if let Err(error) = dropped {
            self.release_leases(&works);
            return Err(error);
        }
        crash_point("after-drop-of-keyspaces");
        let mut transaction = self.store.begin(wait)?;
        for &keyspace in keyspaces {
            catalog::remove_pending_drop(&mut transaction, keyspace)?;
        }
        transaction.commit(Durability::Deferred)?;
        Ok(())
    }
}

/// Leases.
impl<S: Store> Backend<S> {
    fn take_lease(&self, work: LeasedWork) -> Result<LeaseAttempt> {
        let mut transaction = self.store.begin(Duration::ZERO)?;
        let attempt = work.take(&mut transaction, &self.shared.leases)?;
        if attempt == LeaseAttempt::Taken {
            transaction.commit(Durability::Deferred)?;
        }
        Ok(attempt)
    }

    /// Executes `work`, and meanwhile renews its leases, which this process must hold. If only this process writes to the database, there are no
    /// leases.
    fn holding<R>(&self, works: &[LeasedWork], work: impl FnOnce() -> Result<R>) -> Result<R> {
        let is_exclusive = self.shared.capabilities.exclusive;
        let held = (!is_exclusive).then(|| HeldLeases::renew(self.this.clone(), works.to_vec()));
        let done = work();
        drop(held);
        done
    }

    /// Renews those of the leases that this process still holds.
    pub(super) fn renew_leases(&self, works: &[LeasedWork]) -> Result<()> {
        let mut transaction = self.store.begin(Duration::ZERO)?;
        let mut any = false;
        for work in works {
            any |= work.renew(&mut transaction, &self.shared.leases)?;
        }
        if any {
            transaction.commit(Durability::Deferred)?;
        }
        Ok(())
    }

    /// Releases the leases of work that was not done. If that fails, they expire.
    fn release_leases(&self, works: &[LeasedWork]) {
        let release = || -> Result<()> {
            let mut transaction = self.store.begin(Duration::ZERO)?;
            let mut any = false;
            for work in works {
                any |= work.release(&mut transaction, &self.shared.leases)?;
            }
            if any {
                transaction.commit(Durability::Deferred)?;
            }
            Ok(())
        };
        if !self.shared.capabilities.exclusive {
            let _ = release();
        }
    }
}

/// Statistics are gathered from a snapshot and written in a separate transaction: user transactions neither scan a collection for
/// them, nor wait for them, nor conflict with them.
impl<S: Store> Backend<S> {
    /// Gathers the statistics that a commit has made stale, on a store that several processes write to in the background. They stay stale if another
    /// writer is active.
    pub(super) fn refresh_statistics(&self, stale: &[StaleCollection]) {
        if !self.shared.capabilities.exclusive {
            self.refresh_beside(stale);
            return;
        }
        for collection in stale {
            // The commit has succeeded, so a failure here is ignored.
            let find = |catalog: &Catalog| catalog.owner(collection.records).cloned();
            let _ = self.renew_statistics(find, max_keys(collection), Duration::ZERO, &[]);
        }
    }

    /// Gathers stale statistics on a background thread.
    fn refresh_beside(&self, stale: &[StaleCollection]) {
        if stale.is_empty() || !self.stale.add(stale) {
            return;
        }
        let backend = self.this.clone();
        let serve = move || {
            while let Some(backend) = backend.upgrade() {
                let Some(collection) = backend.stale.next() else { return };
                backend.refresh_leased(&collection);
            }
        };
        if thread::Builder::new().name("slate-statistics".into()).spawn(serve).is_err() {
            self.stale.clear();
        }
    }

    /// Gathers statistics unless another process is doing so, or has done so since they became stale.
    fn refresh_leased(&self, stale: &StaleCollection) {
        let work = LeasedWork::Statistics(stale.records);
        let staleness = &self.shared.staleness;
        let is_stale = |collection: &Arc<CollectionInfo>| {
            collection.lacks_statistics() || staleness.is_stale(stale.records, collection.known_records())
        };
        let find = |catalog: &Catalog| catalog.owner(stale.records).cloned().filter(is_stale);
        // Checks without a lease first: acquiring and releasing one are two commits.
        let is_due = self.last().is_ok_and(|(_, catalog)| find(&catalog).is_some());
        if !is_due || !matches!(self.take_lease(work), Ok(LeaseAttempt::Taken)) {
            return;
        }
        // After a failure, a later commit tries again.
        if !matches!(self.renew_statistics(find, max_keys(stale), Duration::ZERO, &[work]), Ok(true)) {
            self.release_leases(&[work]);
        }
    }

    /// Gathers the statistics of a collection from all its keys. Does nothing if the collection does not exist.
    pub(super) fn gather_statistics(&self, collection: &str, wait: Duration) -> Result<()> {
        let find = |catalog: &Catalog| {
            let found = catalog.collection(collection).cloned();
            found.inspect(|collection| self.stale.remove(collection.records))
        };
        self.renew_statistics(find, u64::MAX, wait, &[]).map(drop)
    }

    /// Gathers the statistics of the collection that `find` returns; writes them and releases these leases in one commit. Returns false, having
    /// written nothing, if the collection does not exist or a lease was lost.
    fn renew_statistics(
        &self,
        find: impl FnOnce(&Catalog) -> Option<Arc<CollectionInfo>>,
        max_keys: u64,
        wait: Duration,
        leases: &[LeasedWork],
    ) -> Result<bool> {
        let (view, catalog) = self.last()?;
        let Some(collection) = find(&catalog) else { return Ok(false) };
        let growth = self.shared.staleness.growth(collection.records);
        let gather = || CollectionStatistics::gather(&view, &collection, growth, max_keys);
        let statistics = if leases.is_empty() { gather() } else { self.holding(leases, gather) }?;
        drop(view);
        let _writing = self.stale.write();
        let mut transaction = self.store.begin(wait)?;
        // If the collection was dropped meanwhile, nothing would remove the statistics.
        if self.shared.catalogs.load(&transaction.view())?.owner(collection.records).is_none() {
            return Ok(false);
        }
        for lease in leases {
            if !lease.release(&mut transaction, &self.shared.leases)? {
                return Ok(false);
            }
        }
        statistics.store(&mut transaction, &collection)?;
        let changed = std::iter::once(&*collection.name);
        self.shared.catalogs.change(changed, || Ok(transaction.commit(Durability::Deferred)?))?;
        self.shared.staleness.included(collection.records, growth);
        trace::statistics(&collection.name);
        Ok(true)
    }
}

fn max_keys(stale: &StaleCollection) -> u64 {
    stale.growth.unsigned_abs().saturating_mul(MAX_KEYS_PER_RECORD).max(MAX_KEYS)
}
