use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError, RwLock},
};

use slate_query::Code;

use crate::{Error, ErrorKind, Result};

/// Keeps changes of a collection's definition apart from writes to its documents, where several transactions may be
/// open at once.
///
/// A writer guards the definition, and conflicts with one that was committed before it. The other way round the store
/// sees no conflict: who creates an index has read the documents as they were, and a writer who commits first changes
/// no key of the definition. So commits are noted here by the collections that they wrote to. The store lies in this
/// process alone, and so does the gate.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Writers commit side by side, who changes a definition alone.
    turn: RwLock<()>,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    commits: u64,
    /// The last commit that wrote to a collection.
    written: HashMap<Box<str>, u64>,
}

/// How many commits were noted before a transaction began. It is taken before the transaction's snapshot is: a commit
/// between the two then looks as if it came after both, which costs a needless conflict and no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began(u64);

impl Gate {
    pub(crate) fn began(&self) -> Began {
        Began(self.notes.lock().unwrap_or_else(PoisonError::into_inner).commits)
    }

    /// Runs the commit of a transaction that wrote to the collections `written` and defined those of `defined` anew.
    ///
    /// # Errors
    /// `Conflict` where another transaction wrote to one of `defined` since this one began; those of `commit`.
    pub(crate) fn commit<'n>(
        &self,
        began: Began,
        written: impl Iterator<Item = &'n Box<str>>,
        mut defined: impl ExactSizeIterator<Item = &'n Box<str>>,
        commit: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (_shared, _alone);
        if defined.len() == 0 {
            _shared = self.turn.read().unwrap_or_else(PoisonError::into_inner);
        } else {
            _alone = self.turn.write().unwrap_or_else(PoisonError::into_inner);
            let notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            if defined.any(|name| notes.written.get(name).is_some_and(|last| *last > began.0)) {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    Code::WRITE_CONFLICT,
                    "another transaction wrote to the collection whose definition this one changes",
                ));
            }
        }
        commit()?;
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.commits += 1;
        let commits = notes.commits;
        for name in written {
            match notes.written.get_mut(name) {
                Some(last) => *last = commits,
                None => drop(notes.written.insert(name.clone(), commits)),
            }
        }
        Ok(())
    }
}
