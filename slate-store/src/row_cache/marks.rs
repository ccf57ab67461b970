use std::sync::atomic::{AtomicU64, Ordering};

use crate::moments::{LastWritten, Moment, Moments, Writing};

/// When keys were written last, and which were asked for last. Keys share places, by their hashes: one counts as written when
/// another one of its place was.
pub(super) struct Marks {
    /// The number of the commit that wrote last, and the end of the hash that was asked for last, [`ASKED`] bits.
    places: Box<[AtomicU64]>,
    /// By which commit that may have written any key.
    any: LastWritten,
    moments: Moments,
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
            any: LastWritten::at(Moment::START),
            moments: Moments::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.places)
    }

    pub(super) fn moment(&self) -> Moment {
        self.moments.now()
    }

    pub(super) fn writing(&self, hashes: &[u64]) -> Writing<'_> {
        let writing = self.moments.begin();
        let mark = writing.moment().number() << ASKED;
        for place in hashes.iter().filter_map(|hash| self.place(*hash)) {
            // A later commit of another key may have been quicker.
            place.fetch_max(mark, Ordering::AcqRel);
        }
        writing
    }

    pub(super) fn writing_any(&self) -> Writing<'_> {
        let writing = self.moments.begin();
        self.any.note(writing.moment());
        writing
    }

    /// Whether no commit wrote a key of that hash after that moment.
    #[inline]
    pub(super) fn is_unwritten_since(&self, hash: u64, moment: Moment) -> bool {
        let written = self.place(hash).map_or(u64::MAX, |place| place.load(Ordering::Acquire) >> ASKED);
        written <= moment.number() && self.any.moment() <= moment
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
}
