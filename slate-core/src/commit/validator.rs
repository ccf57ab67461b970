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
    written: Mutex<WrittenNames>,
}

/// The version of the last commit that wrote to each collection. The list is bounded, because a program can create and drop any number of
/// collections.
#[derive(Debug, Default)]
struct WrittenNames {
    last: AHashMap<Box<str>, Version>,
    /// A collection that is not listed was not written by a later commit than this.
    forgotten: Version,
}

/// The most names that are listed: they take about 7 MB. Beyond it the half that was written first is forgotten.
const MOST_NAMES: usize = 1 << 16;

impl WrittenNames {
    fn last(&self, name: &str) -> Version {
        self.last.get(name).copied().unwrap_or(self.forgotten)
    }

    fn add(&mut self, name: &str, version: Version) {
        match self.last.get_mut(name) {
            // The later of two concurrent commits may be recorded first.
            Some(last) => *last = version.max(*last),
            // The name can have been listed at a later version, and forgotten since.
            None => drop(self.last.insert(name.into(), version.max(self.forgotten))),
        }
        if self.last.len() > MOST_NAMES {
            self.forget();
        }
    }

    #[cold]
    fn forget(&mut self) {
        // A name with an unknown version is listed with the greatest version. If most names have it, all are forgotten, and every collection
        // counts as written at an unknown version: a store with that many commits of unknown outcome has to be reopened.
        let mut versions: Vec<Version> = self.last.values().copied().collect();
        let middle = versions.len() / 2;
        let (_, middle, _) = versions.select_nth_unstable(middle);
        self.last.retain(|_, version| *version > *middle);
        self.forgotten = self.forgotten.max(*middle);
    }
}

/// The version of a commit that may have become visible at any version.
const UNKNOWN: Version = Version(u64::MAX);

impl OptimisticValidator {
    /// Runs the commit of a transaction that reads version `base`, has read the collections of `read_set` as a whole,
    /// and wrote to those of `written`.
    ///
    /// # Errors
    /// `Conflict` if a collection of the read set was written after `base`; any error of `commit`. With an empty read set a short
    /// call spends its budget and fails instead of waiting for another commit.
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
            let is_changed = |name: &str| last.last(name) > base;
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
            Err(_) => UNKNOWN,
        };
        let mut last = self.written();
        written.for_each(|name| last.add(name, version));
        drop(last);
        committed
    }

    fn written(&self) -> MutexGuard<'_, WrittenNames> {
        // No code under this lock can panic between two dependent updates.
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use slate_query::Code;

    use super::*;
    use crate::ErrorKind;

    fn write(validator: &OptimisticValidator, name: &str, commit: impl FnOnce() -> Result<Version>) -> Result<Version> {
        validator.commit(Version(0), [].into_iter(), [name].into_iter(), &Interrupt::default(), commit)
    }

    /// Whether a transaction that has read the collection at this version conflicts.
    fn conflicts(validator: &OptimisticValidator, name: &str, base: u64) -> bool {
        let commit = || Ok(Version(base));
        let read = [name].into_iter();
        validator.commit(Version(base), read, [].into_iter(), &Interrupt::default(), commit).is_err()
    }

    #[test]
    fn a_commit_that_is_recorded_after_a_later_one_was_forgotten_does_not_hide_it() {
        let validator = OptimisticValidator::default();
        let (earlier, later) = (Version(9), Version(10));
        let result = write(&validator, "c", || {
            write(&validator, "c", || Ok(later)).unwrap();
            for number in 0..=MOST_NAMES {
                write(&validator, &format!("job{number}"), || Ok(later)).unwrap();
            }
            assert!(!validator.written().last.contains_key("c"), "the later commit is forgotten");
            Ok(earlier)
        });
        assert_eq!(result.unwrap(), earlier);
        assert!(conflicts(&validator, "c", earlier.0), "the transaction has not read what the later commit wrote");
        assert!(!conflicts(&validator, "c", later.0));
    }

    #[test]
    fn names_are_forgotten_and_then_count_as_written_by_the_latest_commit_that_was() {
        let validator = OptimisticValidator::default();
        let commits = 3 * MOST_NAMES as u64;
        let lost = || Err(Error::new(ErrorKind::Io, Code::UNKNOWN_ERROR, "the device failed"));
        write(&validator, "unknown", lost).unwrap_err();
        for version in 1..=commits {
            write(&validator, &format!("job{version}"), || Ok(Version(version))).unwrap();
        }
        let (listed, forgotten) = {
            let written = validator.written();
            (written.last.len(), written.forgotten.0)
        };
        assert!((MOST_NAMES / 2..=MOST_NAMES).contains(&listed), "{listed} names");
        assert!(forgotten > 0 && forgotten < commits - MOST_NAMES as u64 / 4, "{forgotten}");
        for version in [1, forgotten, forgotten + 1, commits] {
            let name = format!("job{version}");
            assert!(conflicts(&validator, &name, version - 1), "{name}");
            assert!(!conflicts(&validator, &name, version.max(forgotten)), "{name}");
        }
        assert!(conflicts(&validator, "unknown", commits) && !conflicts(&validator, "never", commits));
    }

    #[test]
    fn names_of_commits_whose_outcome_is_unknown_are_bounded_and_then_all_conflict() {
        let validator = OptimisticValidator::default();
        write(&validator, "known", || Ok(Version(1))).unwrap();
        for number in 0..3 * MOST_NAMES {
            let lost = || Err(Error::new(ErrorKind::Io, Code::UNKNOWN_ERROR, "the device failed"));
            write(&validator, &format!("job{number}"), lost).unwrap_err();
            assert!(conflicts(&validator, "job0", 1));
        }
        assert!(validator.written().last.len() <= MOST_NAMES);
        for name in ["known", "never", "job0", &format!("job{}", 3 * MOST_NAMES - 1)] {
            assert!(conflicts(&validator, name, u64::MAX - 1), "{name}");
        }
    }
}
