//! What dropping a keyspace means to open transactions. It writes no single key for a commit to be compared with; so each
//! drop is noted here, and a commit compares the keyspaces it touched with the notes.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{Context, Error, Keyspace, Result};

#[derive(Default)]
pub(super) struct Drops {
    /// Read-locked while a commit is made, write-locked while a keyspace is dropped: each commit comes wholly before each
    /// drop or wholly after it.
    notes: RwLock<Notes>,
    /// How many transactions are open.
    open: AtomicUsize,
}

#[derive(Default)]
struct Notes {
    /// How many keyspaces were dropped since the database was opened.
    drops: u64,
    /// Which of the drops was each keyspace's last.
    last: HashMap<Keyspace, u64>,
}

impl Drops {
    /// Notes that a transaction begins. Its snapshot must be taken after that: then it sees each drop that it is not told of.
    pub(super) fn begin(drops: &Arc<Self>) -> Began {
        // Nothing under this lock panics halfway through a change.
        let notes = drops.notes.read().unwrap_or_else(PoisonError::into_inner);
        drops.open.fetch_add(1, Ordering::Relaxed);
        Began { drops: Arc::clone(drops), after: notes.drops }
    }

    /// Drops a keyspace by `erase`, while nobody commits.
    pub(super) fn note<T>(&self, keyspace: Keyspace, erase: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut notes = self.notes.write().unwrap_or_else(PoisonError::into_inner);
        let erased = erase()?;
        notes.drops += 1;
        if self.open.load(Ordering::Relaxed) == 0 {
            // Nobody is left to be told of any.
            notes.last.clear();
        } else {
            let drops = notes.drops;
            notes.last.insert(keyspace, drops);
        }
        Ok(erased)
    }
}

/// An open transaction, as far as drops concern it.
pub(super) struct Began {
    drops: Arc<Drops>,
    /// How many drops there had been.
    after: u64,
}

impl Began {
    /// Runs `commit`, unless one of the keyspaces that the transaction `touched` was dropped since it began.
    pub(super) fn commit<T>(
        &self,
        touched: impl IntoIterator<Item = Keyspace>,
        commit: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let notes = self.drops.notes.read().unwrap_or_else(PoisonError::into_inner);
        let was_dropped = |keyspace| notes.last.get(&keyspace).is_some_and(|drop| *drop > self.after);
        if notes.drops > self.after && touched.into_iter().any(was_dropped) {
            let detail = "a keyspace that this one wrote to or guarded was dropped";
            return Err(Error::Conflict(Box::new(Context::new(detail))));
        }
        commit()
    }
}

impl Drop for Began {
    fn drop(&mut self) {
        self.drops.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Keyspace = Keyspace(1);
    const B: Keyspace = Keyspace(2);

    #[test]
    fn who_began_before_a_drop_and_touched_the_keyspace_is_told() {
        let drops = Arc::<Drops>::default();
        let before = Drops::begin(&drops);
        drops.note(A, || Ok(())).unwrap();
        let after = Drops::begin(&drops);
        assert!(before.commit([B, A], || Ok(())).unwrap_err().is_retryable());
        assert!(before.commit([B], || Ok(())).is_ok());
        assert!(after.commit([A, B], || Ok(())).is_ok());
        drops.note(A, || Ok(())).unwrap();
        assert!(after.commit([A], || Ok(())).is_err());
    }

    #[test]
    fn a_drop_that_failed_is_not_noted() {
        let drops = Arc::<Drops>::default();
        let began = Drops::begin(&drops);
        assert!(drops.note(A, || Err::<(), _>(Error::Io(Box::default()))).is_err());
        assert!(began.commit([A], || Ok(())).is_ok());
    }

    #[test]
    fn notes_go_with_those_they_are_for() {
        let drops = Arc::<Drops>::default();
        let began = Drops::begin(&drops);
        drops.note(A, || Ok(())).unwrap();
        assert_eq!(drops.notes.read().unwrap().last.len(), 1);
        drop(began);
        drops.note(B, || Ok(())).unwrap();
        assert!(drops.notes.read().unwrap().last.is_empty());
    }
}
