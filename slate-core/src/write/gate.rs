use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};

use ahash::AHashMap;
use slate_query::Code;

use super::involved::Involved;
use crate::{Error, ErrorKind, Result};

/// Records the collections that commits wrote to, and validates transactions that read whole collections.
///
/// Stores detect conflicts between single keys. Some transactions rely on more: the creation of an index has read all
/// documents of the collection, and a serializable transaction has read those that a filter matched or could have
/// matched. Such a transaction watches the collection and conflicts if a commit since its beginning wrote to it. It is
/// validated and committed while no other commit runs, so that everything that it read is unchanged at its position in
/// the commit order. Single keys that were read are guarded in the store.
///
/// Other writers do not conflict with each other here. The record is in the memory of the process, which has the
/// database exclusively.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Held shared by ordinary commits, exclusively by commits that are validated.
    turn: RwLock<()>,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    commits: u64,
    /// The last commit that wrote to each collection.
    written: AHashMap<Box<str>, u64>,
}

/// Number of commits recorded before a transaction began. It is read before the transaction's snapshot is taken: a
/// commit between the two counts as later, which can only cause an unnecessary conflict.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began(u64);

impl Gate {
    pub(crate) fn began(&self) -> Began {
        Began(self.notes().commits)
    }

    /// Validates and runs a commit.
    ///
    /// # Errors
    /// Fails with `Conflict` if another transaction wrote to a watched collection since this one began, and with the
    /// errors of `commit`.
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
        // A commit with unknown outcome may have been applied.
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
        // No code under the lock can panic between two dependent updates.
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
