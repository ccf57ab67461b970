//! The order of commits, for what is kept of what was read: when something was written, and what a snapshot surely sees.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// A place among the commits: a snapshot sees every commit up to its moment, and may see later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    /// Before all commits.
    pub(crate) const START: Self = Self(0);

    /// How many commits there were up to it.
    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

/// When something was last written to: the latest moment of those that it was told.
#[derive(Debug)]
pub(crate) struct LastWritten(AtomicU64);

impl LastWritten {
    pub(crate) fn at(moment: Moment) -> Self {
        Self(AtomicU64::new(moment.0))
    }

    pub(crate) fn note(&self, moment: Moment) {
        // A later commit may have been quicker.
        self.0.fetch_max(moment.0, Ordering::AcqRel);
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment(self.0.load(Ordering::Acquire))
    }
}

/// The commits of a database, in the order in which they began. In cache lines of their own (processors fetch two at a time):
/// each commit writes to them, and what stands beside them is read with every row.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Moments {
    commits: Mutex<Commits>,
    /// Up to this one all commits are over.
    over: AtomicU64,
}

#[derive(Default)]
struct Commits {
    /// The number of the last one that began.
    last: u64,
    under_way: BTreeSet<u64>,
}

impl Moments {
    /// Where a snapshot stands that is opened after this call.
    pub(crate) fn now(&self) -> Moment {
        Moment(self.over.load(Ordering::Acquire))
    }

    /// Begins a commit, before anybody can see it. By the time that what is given back is dropped, everybody who begins to
    /// read must see it, or nobody ever will.
    pub(crate) fn begin(&self) -> Writing<'_> {
        let mut commits = self.lock();
        commits.last += 1;
        let number = commits.last;
        commits.under_way.insert(number);
        Writing { moments: self, number }
    }

    fn lock(&self) -> MutexGuard<'_, Commits> {
        // Nothing under this lock panics halfway through a change.
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A commit that is being made.
pub(crate) struct Writing<'c> {
    moments: &'c Moments,
    number: u64,
}

impl Writing<'_> {
    /// Where it stands among the commits: snapshots of earlier moments may not see it.
    pub(crate) fn moment(&self) -> Moment {
        Moment(self.number)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        let mut commits = self.moments.lock();
        commits.under_way.remove(&self.number);
        let over = commits.under_way.first().map_or(commits.last, |first| first - 1);
        self.moments.over.store(over, Ordering::Release);
    }
}
