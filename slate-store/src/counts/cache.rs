use std::{
    array,
    collections::HashMap,
    sync::{
        PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{
    NotedKeys,
    noted::Noted,
    stretches::{Known, LEAST, Stretches},
    walk::{Walked, walk},
};
use crate::{
    Bounds, Keyspace, Result, View,
    bounds::OwnedBounds,
    moments::{LastWritten, Moment, Writing},
};

/// Counts of the keyspaces that somebody counted.
pub(crate) struct CountCache {
    /// Written only by who has counted, or forgets.
    state: RwLock<State>,
    /// Whether anybody counted. Who writes and does not see it yet says that any key may be written.
    is_used: AtomicBool,
    /// When keyspaces were last written to. Several share a place.
    written: [LastWritten; PLACES],
    /// How many bytes the stretches of one keyspace may take.
    room: usize,
}

#[derive(Default)]
struct State {
    counted: HashMap<Keyspace, Stretches>,
    /// How often somebody has learned of a keyspace.
    turns: u64,
}

const PLACES: usize = 64;

/// A keyspace may take so much of the room.
const SHARE: usize = 4;

impl CountCache {
    /// One that takes about so many bytes at most, of a database that nobody has written to yet.
    pub(crate) fn new(bytes: usize) -> Self {
        let written = array::from_fn(|_| LastWritten::at(Moment::START));
        Self { state: RwLock::default(), is_used: AtomicBool::new(false), written, room: bytes / SHARE }
    }

    /// Notes a commit that writes these keys, before anybody can see it.
    pub(crate) fn writing(&self, keys: &NotedKeys, writing: &Writing<'_>) {
        if keys.is_empty() {
            return;
        }
        let moment = writing.moment();
        // In this order: who learns of a keyspace that is not there yet looks at these, and all others at its stretches.
        let state = self.read();
        let mut is_left = false;
        for (keyspace, noted) in keys.each() {
            self.written(keyspace).note(moment);
            match (state.counted.get(&keyspace), noted) {
                (None, _) => {}
                (Some(stretches), Noted::Keys(keys)) => stretches.write(keys, moment),
                (Some(_), Noted::Any) => is_left = true,
            }
        }
        drop(state);
        if is_left {
            let any = keys.each().filter(|(_, noted)| matches!(noted, Noted::Any));
            let mut state = self.write();
            let forgotten: Vec<_> = any.filter_map(|(keyspace, _)| state.counted.remove(&keyspace)).collect();
            // To take them apart is no reason for others to wait.
            drop(state);
            drop(forgotten);
        }
    }

    /// About the bytes that are taken.
    #[cfg(feature = "rocksdb")]
    pub(crate) fn bytes(&self) -> u64 {
        u64::try_from(self.read().bytes()).unwrap_or(u64::MAX)
    }

    /// Whether it matters which keys of a keyspace are written.
    pub(crate) fn is_counted(&self, keyspace: Keyspace) -> bool {
        self.is_used.load(Ordering::Relaxed) && self.read().counted.contains_key(&keyspace)
    }

    /// How many keys there are within bounds, in a view that is a snapshot of that moment; `None` where `go_on`, asked before
    /// each step, says no.
    pub(crate) fn count<V: View>(
        &self,
        view: &V,
        moment: Moment,
        keyspace: Keyspace,
        bounds: Bounds<'_>,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Option<u64>> {
        if bounds.is_empty() {
            return Ok(Some(0));
        }
        let known = match self.read().counted.get(&keyspace) {
            Some(stretches) => stretches.known(bounds, moment),
            None => Known { rest: vec![OwnedBounds::of(bounds)], ..Known::default() },
        };
        let mut keys = known.keys;
        let mut learned = Vec::with_capacity(known.rest.len());
        // Half of what is left, so that there is room for other bounds.
        let room = self.room.saturating_sub(known.bytes) / 2 / known.rest.len().max(1);
        for part in known.rest {
            let mut cursor = view.cursor(keyspace, part.bounds())?;
            let Some(walked) = walk(&mut cursor, room, &mut go_on)? else { return Ok(None) };
            keys += walked.keys;
            learned.push((part, walked));
        }
        if !learned.is_empty() {
            self.learn(keyspace, learned, moment);
        }
        Ok(Some(keys))
    }

    fn learn(&self, keyspace: Keyspace, learned: Vec<(OwnedBounds, Walked)>, moment: Moment) {
        let mut state = self.write();
        let State { counted, turns } = &mut *state;
        if learned.iter().all(|(_, walked)| walked.keys < LEAST) && !counted.contains_key(&keyspace) {
            return;
        }
        self.is_used.store(true, Ordering::Relaxed);
        let unknown = || Stretches::new(self.written(keyspace).moment());
        let stretches = counted.entry(keyspace).or_insert_with(unknown);
        let has_room = |stretches: &Stretches| {
            let learning = learned.iter().map(|(part, walked)| stretches.bytes_of(part.bounds(), walked));
            stretches.bytes() + learning.sum::<usize>() <= self.room
        };
        if !has_room(stretches) {
            // Cut too often, by bounds of all kinds: begun anew.
            *stretches = unknown();
        }
        if !has_room(stretches) {
            counted.remove(&keyspace);
            return;
        }
        *turns += 1;
        stretches.turn = *turns;
        learned.into_iter().for_each(|(part, walked)| stretches.learn(part.bounds(), walked, moment));
        while state.bytes() > self.room.saturating_mul(SHARE) {
            let oldest = state.counted.iter().min_by_key(|(_, stretches)| stretches.turn);
            let Some(oldest) = oldest.map(|(keyspace, _)| *keyspace) else { break };
            state.counted.remove(&oldest);
        }
    }

    /// When the keyspace was last written to, or another of its place.
    fn written(&self, keyspace: Keyspace) -> &LastWritten {
        let [first, others @ ..] = &self.written;
        let place = usize::try_from(keyspace.0).unwrap_or_default() % PLACES;
        place.checked_sub(1).and_then(|other| others.get(other)).unwrap_or(first)
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        // Nothing under this lock panics halfway through a change.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn bytes(&self) -> usize {
        self.counted.values().map(Stretches::bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use super::{super::noted::MOST, *};
    use crate::{
        Durability, Isolation, Store, Transaction,
        conformance::Random,
        memory::{MemorySnapshot, MemoryStore},
        row_cache::RowCache,
    };

    const A: Keyspace = Keyspace(1);
    const ROOM: usize = 1 << 20;

    /// A store whose commits are told to a cache.
    struct Trial {
        store: MemoryStore,
        rows: RowCache,
        counts: CountCache,
    }

    impl Trial {
        fn new(room: usize) -> Self {
            Self { store: MemoryStore::new(), rows: RowCache::new(0), counts: CountCache::new(room) }
        }

        /// Writes keys: those that are there are deleted.
        fn toggle(&self, keys: &[u16]) {
            let writing = self.begin(keys);
            self.make_visible(keys);
            drop(writing);
        }

        /// Notes a commit.
        fn begin(&self, keys: &[u16]) -> Writing<'_> {
            let mut noted = NotedKeys::default();
            keys.iter().for_each(|key| noted.note(&self.counts, A, &key.to_be_bytes()));
            let writing = self.rows.writing(&[]);
            self.counts.writing(&noted, &writing);
            writing
        }

        fn make_visible(&self, keys: &[u16]) {
            let before = self.store.snapshot().unwrap();
            let mut transaction = self.store.begin(Isolation::Snapshot, Duration::ZERO).unwrap();
            for key in BTreeSet::from_iter(keys) {
                let key = key.to_be_bytes();
                match before.get(A, &key, |_| ()).unwrap() {
                    Some(()) => transaction.delete(A, &key).unwrap(),
                    None => transaction.put(A, &key, b"").unwrap(),
                }
            }
            transaction.commit(Durability::Deferred).unwrap();
        }

        fn snapshot(&self) -> (Moment, MemorySnapshot) {
            (self.rows.moment(), self.store.snapshot().unwrap())
        }

        /// Counts the keys from one to another, checks the count, and tells how many steps it took.
        fn count(&self, (moment, view): &(Moment, MemorySnapshot), from: u16, to: u16) -> u64 {
            let (from, to) = (from.to_be_bytes(), to.to_be_bytes());
            let bounds = Bounds { start: Some(&from), end: Some(&to) };
            let mut steps = 0;
            let go_on = || {
                steps += 1;
                true
            };
            let counted = self.counts.count(view, *moment, A, bounds, go_on).unwrap();
            assert_eq!(counted, view.count(A, bounds, || true).unwrap(), "{bounds:?}");
            steps
        }
    }

    #[test]
    fn what_is_counted_again_takes_no_step_where_nothing_was_written() {
        let trial = Trial::new(ROOM);
        trial.toggle(&(0..1_000).collect::<Vec<_>>());
        let now = trial.snapshot();
        assert_eq!(trial.count(&now, 100, 900), 800);
        assert_eq!(trial.count(&now, 100, 900), 0);
        assert!(trial.count(&now, 0, 950) <= 150 && trial.count(&now, 203, 704) < 20);
        trial.toggle(&[500, 1_500]);
        let after = trial.snapshot();
        assert!((1..20).contains(&trial.count(&after, 100, 900)), "one stretch");
        assert_eq!(trial.count(&after, 100, 900), 0);
        assert!((1..20).contains(&trial.count(&now, 100, 900)), "not for those who did not see it");
        assert_eq!(trial.count(&after, 100, 900), 0, "who came before takes nothing away");
    }

    #[test]
    fn each_snapshot_counts_its_own_keys() {
        [ROOM, 8 << 10, 16 << 10, 120 << 10].into_iter().for_each(each_snapshot_counts_its_own_keys_in);
    }

    /// In so much room: in little it is begun anew time and again.
    fn each_snapshot_counts_its_own_keys_in(room: usize) {
        let trial = Trial::new(room);
        let mut random = Random::new(3);
        let key = |random: &mut Random| u16::try_from(random.below(600)).unwrap();
        let mut kept = vec![trial.snapshot()];
        for _ in 0..2_000 {
            let most = [3, 3, 3, 3, 3, 3, 200][random.index(7)];
            let keys: Vec<u16> = (0..random.below(most)).map(|_| key(&mut random)).collect();
            if random.below(4) == 0 {
                // Seen by some before it is over.
                let writing = trial.begin(&keys);
                kept.push(trial.snapshot());
                trial.make_visible(&keys);
                kept.push(trial.snapshot());
                let during = &kept[kept.len() - 1 - random.index(2)];
                trial.count(during, key(&mut random), key(&mut random));
                drop(writing);
            } else {
                trial.toggle(&keys);
            }
            kept.push(trial.snapshot());
            for _ in 0..4 {
                let old = &kept[kept.len() - 1 - random.index(kept.len().min(12))];
                let [from, to] = if random.below(2) == 0 { [100, 500] } else { [(); 2].map(|()| key(&mut random)) };
                trial.count(old, from, to);
            }
        }
    }

    #[test]
    fn a_commit_that_began_before_anybody_counted_is_not_taken_for_one_that_wrote_nothing() {
        let trial = Trial::new(ROOM);
        trial.toggle(&(0..100).collect::<Vec<_>>());
        let mut noted = NotedKeys::default();
        noted.note(&trial.counts, A, &5_u16.to_be_bytes());
        trial.count(&trial.snapshot(), 0, 100);
        trial.counts.writing(&noted, &trial.rows.writing(&[]));
        trial.make_visible(&[5]);
        assert_eq!(trial.count(&trial.snapshot(), 0, 100), 99);
        // And one that is noted while somebody counts.
        let trial = Trial::new(ROOM);
        trial.toggle(&(0..100).collect::<Vec<_>>());
        let (moment, before) = trial.snapshot();
        trial.toggle(&[5]);
        trial.count(&(moment, before), 0, 100);
        assert_eq!(trial.count(&trial.snapshot(), 0, 100), 99);
    }

    #[test]
    fn of_two_who_count_at_once_the_later_disturbs_nothing() {
        for [from, to] in [[50_u16, 950], [150, 950], [50, 500], [300, 320]] {
            let trial = Trial::new(ROOM);
            trial.toggle(&(0..1_000).collect::<Vec<_>>());
            let now = trial.snapshot();
            let (start, end) = (from.to_be_bytes(), to.to_be_bytes());
            let bounds = Bounds { start: Some(&start), end: Some(&end) };
            let mut is_first = true;
            let counted = trial.counts.count(&now.1, now.0, A, bounds, || {
                if std::mem::take(&mut is_first) {
                    trial.count(&now, 100, 900);
                }
                true
            });
            assert_eq!(counted.unwrap(), Some(u64::from(to - from)));
            assert_eq!(trial.count(&now, 100, 900), 0);
            for [from, to] in [[from, to], [0, 1_000], [90, 110], [890, 910]] {
                trial.count(&now, from, to);
                trial.count(&now, from, to);
            }
        }
    }

    #[test]
    fn of_many_keys_it_is_only_known_where_they_are() {
        let trial = Trial::new(ROOM);
        trial.toggle(&(0..1_000).collect::<Vec<_>>());
        assert_eq!(trial.count(&trial.snapshot(), 0, 1_000), 1_000);
        trial.toggle(&(0..u16::try_from(MOST).unwrap()).collect::<Vec<_>>());
        assert!(trial.count(&trial.snapshot(), 0, 1_000) < 20);
        trial.toggle(&(0..=u16::try_from(MOST).unwrap()).collect::<Vec<_>>());
        assert_eq!(trial.count(&trial.snapshot(), 0, 1_000), 999);
    }

    #[test]
    fn what_was_written_to_everywhere_is_counted_once() {
        for keys in [400, 2_000, 20_000] {
            let trial = Trial::new(16 << 10);
            trial.toggle(&(0..keys).collect::<Vec<_>>());
            let count = || trial.count(&trial.snapshot(), 0, u16::MAX);
            while count() > 0 {}
            (0..keys / 10).for_each(|key| trial.toggle(&[key * 10]));
            assert!(count() > 0);
            assert_eq!([count(), count()], [0, 0], "of {keys} keys");
        }
    }

    #[test]
    fn counts_take_the_room_that_there_is() {
        for room in [0, 1, 1 << 10, 20 << 10] {
            let trial = Trial::new(room);
            trial.toggle(&(0..5_000).collect::<Vec<_>>());
            let now = trial.snapshot();
            for from in 0..500 {
                trial.count(&now, from * 7, 5_000 - from);
                assert!(trial.counts.read().bytes() <= room);
            }
            if room > 10 << 10 {
                // It may be begun anew.
                trial.count(&now, 0, 5_000);
                trial.count(&now, 0, 5_000);
                assert_eq!(trial.count(&now, 0, 5_000), 0, "larger stretches take less");
            }
        }
    }
}
