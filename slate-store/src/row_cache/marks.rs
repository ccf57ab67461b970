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

/// When keys were written last, and which were asked for last. Keys share places, by their hashes: one counts as written when
/// another one of its place was.
pub(super) struct Marks {
    /// The number of the commit that wrote last, and the end of the hash that was asked for last, [`ASKED`] bits.
    places: Box<[AtomicU64]>,
    /// The number of the last commit that may have written any key.
    any: AtomicU64,
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

/// How many bits of a hash tell whether it is the one that was asked for. The others are enough to count the commits of an
/// age.
const ASKED: u32 = 16;

impl Marks {
    /// With about so many places.
    pub(super) fn new(places: usize) -> Self {
        let places = places.clamp(1, 1 << 22).next_power_of_two();
        Self {
            places: (0..places).map(|_| AtomicU64::new(0)).collect(),
            any: AtomicU64::new(0),
            commits: Mutex::default(),
            over: AtomicU64::new(0),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.places)
    }

    pub(super) fn moment(&self) -> Moment {
        Moment(self.over.load(Ordering::Acquire))
    }

    pub(super) fn writing(&self, hashes: &[u64]) -> Writing<'_> {
        let writing = self.begin();
        for place in hashes.iter().filter_map(|hash| self.place(*hash)) {
            // A later commit of another key may have been quicker.
            place.fetch_max(writing.number << ASKED, Ordering::AcqRel);
        }
        writing
    }

    pub(super) fn writing_any(&self) -> Writing<'_> {
        let writing = self.begin();
        self.any.fetch_max(writing.number, Ordering::AcqRel);
        writing
    }

    fn begin(&self) -> Writing<'_> {
        let mut commits = self.lock();
        commits.last += 1;
        let number = commits.last;
        commits.under_way.insert(number);
        Writing { marks: self, number }
    }

    /// Whether no commit wrote a key of that hash after that moment.
    #[inline]
    pub(super) fn is_unwritten_since(&self, hash: u64, moment: Moment) -> bool {
        let written = self.place(hash).map_or(u64::MAX, |place| place.load(Ordering::Acquire) >> ASKED);
        written.max(self.any.load(Ordering::Acquire)) <= moment.0
    }

    /// Whether the key of a hash was the last of its place to be asked for, and what a snapshot of that moment reads can be
    /// of use to others.
    pub(super) fn is_asked_again(&self, hash: u64, moment: Moment) -> bool {
        let Some(place) = self.place(hash) else { return false };
        if !self.is_unwritten_since(hash, moment) {
            return false;
        }
        let mark = place.load(Ordering::Acquire);
        // A key whose end is zero counts as asked for before it was: one in 65,536.
        let asked = mark >> ASKED << ASKED | hash >> (u64::BITS - ASKED);
        if mark != asked {
            // Where a commit comes in between, its mark stays.
            let _ = place.compare_exchange(mark, asked, Ordering::Relaxed, Ordering::Relaxed);
        }
        mark == asked
    }

    #[inline]
    fn place(&self, hash: u64) -> Option<&AtomicU64> {
        self.places.get(self.index(hash)?)
    }

    /// By the low bits of the hash; [`is_asked_again`](Self::is_asked_again) compares the high ones.
    #[inline]
    pub(super) fn index(&self, hash: u64) -> Option<usize> {
        let mask = self.places.len() - 1;
        usize::try_from(hash & u64::try_from(mask).ok()?).ok()
    }

    fn lock(&self) -> MutexGuard<'_, Commits> {
        // Nothing under this lock panics halfway through a change.
        self.commits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A commit that is being made.
pub(crate) struct Writing<'c> {
    marks: &'c Marks,
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
        let mut commits = self.marks.lock();
        commits.under_way.remove(&self.number);
        let over = commits.under_way.first().map_or(commits.last, |first| first - 1);
        self.marks.over.store(over, Ordering::Release);
    }
}
