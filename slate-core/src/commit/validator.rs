use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};

use ahash::AHashMap;
use slate_store::Version;

use crate::{Error, Result, interrupt::Interrupt};

/// How the collection reads of a transaction are validated when it commits.
#[derive(Clone, Debug)]
pub(crate) enum Validation {
    /// This process validates reads, because it owns the database alone.
    InProcess(Arc<OptimisticValidator>),
    /// The store validates reads through exclusive guards.
    InStore,
}

/// Validates transactions that have read a collection as a whole: serializable transactions with a query, and index
/// builds. They conflict with every later commit that wrote to the collection.
///
/// A store detects only conflicts between single keys. A transaction that needs validation commits while no other
/// commit is in progress; all other commits run concurrently and never conflict here.
#[derive(Debug, Default)]
pub(crate) struct OptimisticValidator {
    /// Locked for reading by plain commits, for writing by commits that are validated.
    commits: RwLock<()>,
    /// The last commit that wrote to each collection.
    written: Mutex<AHashMap<Box<str>, Version>>,
}

impl OptimisticValidator {
    /// Runs the commit of a transaction that reads version `base`, has read the collections of `read_set` as a whole,
    /// and wrote to those of `written`.
    ///
    /// # Errors
    /// `Conflict` if a collection of the read set was written after `base`; any error of `commit`. A commit that would have to wait
    /// spends the budget of a call that must not.
    pub(crate) fn commit<'n>(
        &self,
        base: Version,
        mut read_set: impl Iterator<Item = &'n str>,
        written: impl Iterator<Item = &'n str>,
        limits: &Interrupt,
        commit: impl FnOnce() -> Result<Version>,
    ) -> Result<Version> {
        let (_shared, _exclusive);
        if let Some(first) = read_set.next() {
            _exclusive = self.commits.write().unwrap_or_else(PoisonError::into_inner);
            let last = self.written();
            let is_changed = |name: &str| last.get(name).is_some_and(|version| *version > base);
            if let Some(changed) = std::iter::once(first).chain(read_set).find(|name| is_changed(name)) {
                return Err(Error::read_conflict(changed));
            }
        } else if let Some(budget) = limits.budget() {
            _shared = match self.commits.try_read() {
                Err(TryLockError::WouldBlock) => return Err(budget.spend()),
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Ok(shared) => shared,
            };
        } else {
            _shared = self.commits.read().unwrap_or_else(PoisonError::into_inner);
        }
        let committed = commit();
        let version = match &committed {
            Ok(version) => *version,
            Err(error) if error.leaves_nothing() => return committed,
            // The commit may have become visible at an unknown version.
            Err(_) => Version(u64::MAX),
        };
        let mut last = self.written();
        for name in written {
            match last.get_mut(name) {
                // The later of two concurrent commits may be recorded first.
                Some(last) => *last = version.max(*last),
                None => drop(last.insert(name.into(), version)),
            }
        }
        drop(last);
        committed
    }

    fn written(&self) -> MutexGuard<'_, AHashMap<Box<str>, Version>> {
        // No code under this lock can panic between two dependent updates.
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
