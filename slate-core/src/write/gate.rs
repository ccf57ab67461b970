use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use ahash::AHashMap;
use slate_query::Code;

use super::involved::Involved;
use crate::{Error, ErrorKind, Result};

/// What commits tell transactions that are still open, where several may be: which collections they wrote to.
///
/// A store sees conflicts between single keys. Some transactions have relied on more: who creates an index has read all
/// documents of the collection, and a serializable transaction those that a filter found and might have found. They watch
/// the collection: if a commit since their beginning wrote to it, they conflict. They are checked and committed while no
/// other commit is under way, so that their place in the order of commits is where all that they read is still so. Single
/// keys that were read are guarded by the store itself.
///
/// Nobody else pays for it: other writers conflict neither with each other here nor with what was read. It lies in the
/// memory of the process, which holds its database alone: every store here is locked by who opened it.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Others commit side by side, who watches alone.
    turn: RwLock<()>,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    commits: u64,
    /// The last commit that wrote to a collection.
    written: AHashMap<Box<str>, u64>,
}

/// How many commits were noted before a transaction began. It is taken before the transaction's snapshot is: a commit
/// between the two then looks as if it came after both, which costs a needless conflict and no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began(u64);

impl Gate {
    pub(crate) fn began(&self) -> Began {
        Began(self.notes().commits)
    }

    /// Runs the commit of a transaction.
    ///
    /// # Errors
    /// `Conflict` where another transaction wrote to a collection that this one watches since it began; those of `commit`.
    pub(super) fn commit(&self, began: Began, involved: &Involved, commit: impl FnOnce() -> Result<()>) -> Result<()> {
        let (_shared, _alone);
        if involved.watched().next().is_none() {
            _shared = self.turn.read().unwrap_or_else(PoisonError::into_inner);
        } else {
            _alone = self.turn.write().unwrap_or_else(PoisonError::into_inner);
            let notes = self.notes();
            if involved.watched().any(|name| notes.written.get(name).is_some_and(|last| *last > began.0)) {
                let message = "another transaction wrote to a collection that this one has read";
                return Err(Error::new(ErrorKind::Conflict, Code::WRITE_CONFLICT, message));
            }
        }
        let outcome = commit();
        // A commit whose outcome is not known may have been made.
        if !outcome.as_ref().is_err_and(Error::is_retryable) {
            let mut notes = self.notes();
            notes.commits += 1;
            let commits = notes.commits;
            for name in involved.written() {
                match notes.written.get_mut(name) {
                    Some(last) => *last = commits,
                    None => drop(notes.written.insert(name.into(), commits)),
                }
            }
        }
        outcome
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        // Nothing under the lock can panic half-way.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
