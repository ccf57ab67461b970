use super::{
    noted::Run,
    walk::{STRETCH, Walked, bytes},
};
use crate::{
    Bounds,
    bounds::OwnedBounds,
    moments::{LastWritten, Moment},
};

/// A keyspace as stretches that meet: each key lies in one.
#[derive(Debug)]
pub(super) struct Stretches {
    /// Where each but the first begins, ascending.
    starts: Vec<Box<[u8]>>,
    /// One more than there are starts.
    stretches: Vec<Stretch>,
    bytes: usize,
    /// When somebody last learned of it, in turns of the cache.
    pub(super) turn: u64,
}

#[derive(Debug)]
struct Stretch {
    /// By which commit at the latest.
    written: LastWritten,
    counted: Option<Counted>,
}

/// How many keys a snapshot of that moment has there.
#[derive(Clone, Copy, Debug)]
struct Counted {
    keys: u64,
    moment: Moment,
}

/// What is known of how many keys a snapshot has within bounds.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) keys: u64,
    /// What has to be counted.
    pub(super) rest: Vec<OwnedBounds>,
    /// About the bytes that all that is known of the keyspace takes.
    pub(super) bytes: usize,
}

/// A part with fewer keys is counted each time, and makes no stretch of its own.
pub(super) const LEAST: u64 = STRETCH / 4;

impl Stretches {
    /// One stretch of everything, of which nothing is known but when it was written.
    pub(super) fn new(written: Moment) -> Self {
        Self { starts: Vec::new(), stretches: vec![Stretch::new(written, None)], bytes: bytes(&[]), turn: 0 }
    }

    /// About the bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// About the bytes that it takes at most to learn of a part.
    pub(super) fn bytes_of(&self, part: Bounds<'_>, walked: &Walked) -> usize {
        let Ends { before, behind } = self.new_ends(part);
        let cuts = walked.cuts.iter().map(|cut| &*cut.at);
        before.into_iter().chain(cuts).chain(behind).map(bytes).sum()
    }

    /// Notes the keys that a commit of that moment writes.
    pub(super) fn write(&self, keys: &Run, moment: Moment) {
        let mut noted = None;
        for key in keys.iter() {
            // Mostly in the order of keys.
            if noted.is_some_and(|at| self.bounds(at).contains(key)) {
                continue;
            }
            let at = self.at(key);
            if let Some(stretch) = self.stretches.get(at) {
                stretch.written.note(moment);
            }
            noted = Some(at);
        }
    }

    /// What a snapshot of that moment may know of its keys within bounds.
    pub(super) fn known(&self, bounds: Bounds<'_>, moment: Moment) -> Known {
        let mut known = Known { bytes: self.bytes, ..Known::default() };
        let first = bounds.start.map_or(0, |start| self.at(start));
        let last = bounds.end.map_or(self.starts.len(), |end| self.starts.partition_point(|start| **start < *end));
        for at in first..=last {
            let whole = self.bounds(at);
            let part = whole.within(bounds);
            match self.stretches.get(at).and_then(|stretch| stretch.keys(moment)) {
                Some(keys) if part == whole => known.keys += keys,
                _ => known.rest.push(OwnedBounds::of(part)),
            }
        }
        known
    }

    /// Keeps what a snapshot of that moment has in a part of one stretch.
    pub(super) fn learn(&mut self, part: Bounds<'_>, walked: Walked, moment: Moment) {
        let at = part.start.map_or(0, |start| self.at(start));
        let whole = self.bounds(at);
        let Some(Stretch { written, counted }) = self.stretches.get(at) else { return };
        let written = written.moment();
        let is_current = written <= moment;
        let was_cut = part.within(whole) != part;
        // What is known already is of use to those who come later.
        let is_behind = !is_current && counted.is_some();
        if was_cut || is_behind || (part != whole && walked.keys < LEAST) {
            return;
        }
        // What lies before the part and what lies behind it stay as unknown as they are.
        let Ends { before, behind } = self.new_ends(part);
        let unknown = |_| Stretch::new(written, None);
        let mut below = 0;
        let ends = walked.cuts.iter().map(|cut| cut.below).chain([walked.keys]);
        let counted = ends.map(|end| {
            let keys = end - std::mem::replace(&mut below, end);
            // Kept, it would not be shown; and would be in the way of one that is.
            Stretch::new(written, is_current.then_some(Counted { keys, moment }))
        });
        let stretches: Vec<Stretch> =
            before.map(unknown).into_iter().chain(counted).chain(behind.map(unknown)).collect();
        let cuts = walked.cuts.into_iter().map(|cut| cut.at);
        let starts: Vec<Box<[u8]>> =
            before.map(Box::from).into_iter().chain(cuts).chain(behind.map(Box::from)).collect();
        self.bytes += starts.iter().map(|start| bytes(start)).sum::<usize>();
        self.starts.splice(at..at, starts);
        self.stretches.splice(at..=at, stretches);
    }

    /// The ends of a part of one stretch, where that has others.
    fn new_ends<'p>(&self, part: Bounds<'p>) -> Ends<'p> {
        let whole = self.bounds(part.start.map_or(0, |start| self.at(start)));
        Ends {
            before: part.start.filter(|_| part.start != whole.start),
            behind: part.end.filter(|_| part.end != whole.end),
        }
    }

    /// The place of the stretch that a key lies in.
    fn at(&self, key: &[u8]) -> usize {
        self.starts.partition_point(|start| **start <= *key)
    }

    fn bounds(&self, at: usize) -> Bounds<'_> {
        let start = at.checked_sub(1).and_then(|before| self.starts.get(before));
        Bounds { start: start.map(|start| &**start), end: self.starts.get(at).map(|end| &**end) }
    }
}

/// The ends of a part that a stretch has to be cut at.
struct Ends<'p> {
    before: Option<&'p [u8]>,
    behind: Option<&'p [u8]>,
}

impl Stretch {
    fn new(written: Moment, counted: Option<Counted>) -> Self {
        Self { written: LastWritten::at(written), counted }
    }

    /// How many keys a snapshot of that moment has in it.
    fn keys(&self, moment: Moment) -> Option<u64> {
        let counted = self.counted?;
        // Whatever commit this count or this snapshot has seen left its mark before.
        (self.written.moment() <= counted.moment.min(moment)).then_some(counted.keys)
    }
}
