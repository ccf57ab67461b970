use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

use slate_store::{
    Bounds, Cursor, Durability, Edge, Keyspace, PointReader, Result, Store, Transaction, TransactionExt, View,
};

pub(super) const A: Keyspace = Keyspace(1);
pub(super) const B: Keyspace = Keyspace(2);
pub(super) const NOW: Duration = Duration::ZERO;
pub(super) const LONG: Duration = Duration::from_secs(60);

pub(super) fn begin<S: Store>(store: &S) -> S::Transaction {
    store.begin(LONG).unwrap()
}

/// Write helpers for tests.
pub(super) trait Writes: Transaction {
    /// Puts several entries.
    fn put_many(&mut self, keyspace: Keyspace, entries: &[(&[u8], &[u8])]) -> Result<()> {
        let writes: Vec<_> = entries.iter().map(|(key, value)| (*key, Some(*value))).collect();
        self.write(keyspace, &writes)
    }

    /// Deletes the keys within `bounds` that the transaction's view shows.
    fn delete_each(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) {
        let keys: Vec<Vec<u8>> = scan(&self.view(), keyspace, bounds).into_iter().map(|(key, _)| key).collect();
        let writes: Vec<_> = keys.iter().map(|key| (&key[..], None)).collect();
        self.write(keyspace, &writes).unwrap();
    }
}

impl<T: Transaction> Writes for T {}

/// A point reader for keys of one keyspace.
pub(super) struct Points<R> {
    reader: R,
    keyspace: Keyspace,
}

pub(super) fn single<V: View>(view: &V, keyspace: Keyspace) -> Points<V::PointReader> {
    Points { reader: view.point_reader().unwrap(), keyspace }
}

impl<R: PointReader> Points<R> {
    pub(super) fn load(&mut self, keys: &[&[u8]]) {
        let keys: Vec<_> = keys.iter().map(|key| (self.keyspace, *key)).collect();
        self.reader.load(&keys).unwrap();
    }

    pub(super) fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.reader.loaded(index)
    }

    pub(super) fn get(&mut self, key: &[u8]) -> Option<&[u8]> {
        self.load(&[key]);
        self.loaded(0)
    }
}

pub(super) fn count(view: &impl View, keyspace: Keyspace, bounds: Bounds<'_>) -> u64 {
    view.count(keyspace, bounds, |_| true).unwrap().unwrap()
}

/// Runs `work` in a transaction until it commits.
pub(super) fn transact<S: Store>(store: &S, durability: Durability, work: impl Fn(&mut S::Transaction)) {
    loop {
        let mut transaction = begin(store);
        work(&mut transaction);
        match transaction.commit(durability) {
            Ok(_) => return,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
}

pub(super) fn put<S: Store>(store: &S, keyspace: Keyspace, entries: &[(&str, &str)]) {
    transact(store, Durability::Sync, |transaction| {
        for (key, value) in entries {
            transaction.put(keyspace, key.as_bytes(), value.as_bytes()).unwrap();
        }
    });
}

pub(super) fn commit(transaction: impl Transaction) {
    transaction.commit(Durability::Sync).unwrap();
}

pub(super) fn within<'b>(start: &'b str, end: &'b str) -> Bounds<'b> {
    Bounds { start: Some(start.as_bytes()), end: Some(end.as_bytes()) }
}

pub(super) type KeyAndValue = (Vec<u8>, Vec<u8>);

/// Returns all entries within the bounds in order. Checks that a cursor returns the same entries forwards and
/// backwards, and that `scan` does, too.
pub(super) fn scan<V: View>(view: &V, keyspace: Keyspace, bounds: Bounds<'_>) -> Vec<KeyAndValue> {
    let mut cursor = view.cursor(keyspace, bounds).unwrap();
    let forwards = collect(&mut cursor, Edge::First, Cursor::step_forward);
    let mut backwards = collect(&mut cursor, Edge::Last, Cursor::step_back);
    backwards.reverse();
    assert_eq!(forwards, backwards, "both directions return the same entries");
    let mut each = Vec::new();
    let visitor = |key: &[u8], value: &[u8]| -> ControlFlow<()> {
        each.push((key.to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    };
    assert_eq!(view.scan(keyspace, bounds, visitor).unwrap(), None);
    assert_eq!(forwards, each, "a scan and a cursor return the same entries");
    forwards
}

fn collect<U: Cursor>(cursor: &mut U, from: Edge<'_>, step: fn(&mut U) -> Result<bool>) -> Vec<KeyAndValue> {
    let mut entries = Vec::new();
    let mut more = cursor.seek(from).unwrap();
    while more {
        let (key, value) = cursor.current().unwrap();
        entries.push((key.to_vec(), value.to_vec()));
        more = step(cursor).unwrap();
    }
    assert!(cursor.current().is_none());
    entries
}

/// Returns the concatenated keys within the bounds.
pub(super) fn keys<V: View>(view: &V, keyspace: Keyspace, bounds: Bounds<'_>) -> String {
    scan(view, keyspace, bounds).into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

pub(super) fn all<V: View>(view: &V, keyspace: Keyspace) -> String {
    keys(view, keyspace, Bounds::ALL)
}

pub(super) fn get<V: View>(view: &V, keyspace: Keyspace, key: &str) -> Option<String> {
    single(view, keyspace).get(key.as_bytes()).map(|value| String::from_utf8(value.to_vec()).unwrap())
}

pub(super) fn number<V: View>(view: &V, keyspace: Keyspace, key: &[u8]) -> u64 {
    single(view, keyspace).get(key).map_or(0, |value| u64::from_be_bytes(value.try_into().unwrap()))
}

pub(super) fn key_of(cursor: &impl Cursor) -> &[u8] {
    cursor.current().unwrap().0
}

/// Runs two writers, each making `rounds` commits to its own keyspace, and two readers that repeatedly check the last
/// commit and an older snapshot. `round` checks that a snapshot shows a complete round of a keyspace and returns its
/// number.
pub(super) fn read_during_writes<S: Store>(
    store: &S,
    rounds: u64,
    round: impl Fn(&S::Snapshot, Keyspace) -> u64 + Sync,
    write: impl Fn(&mut S::Transaction, Keyspace, u64) + Sync,
) {
    let committed = [const { AtomicU64::new(0) }; 2];
    let done = AtomicBool::new(false);
    let seen = |view: &S::Snapshot| [A, B].map(|keyspace| round(view, keyspace));
    let look = || {
        let mut old: Option<(S::Snapshot, [u64; 2])> = None;
        for turn in 0_u64.. {
            let at_least = committed.each_ref().map(|number| number.load(Ordering::Acquire));
            let view = store.snapshot().unwrap();
            let now = seen(&view);
            assert!(now.iter().zip(at_least).all(|(now, least)| *now >= least), "a snapshot shows all earlier commits");
            if let Some((view, then)) = &old {
                assert_eq!(seen(view), *then, "an open snapshot does not change");
            }
            if turn % 5 == 0 {
                old = Some((view, now));
            }
            if done.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    let write = |(keyspace, committed): (Keyspace, &AtomicU64)| {
        for round in 1..=rounds {
            transact(store, Durability::Deferred, |transaction| write(transaction, keyspace, round));
            committed.store(round, Ordering::Release);
            thread::yield_now();
        }
    };
    thread::scope(|scope| {
        let (look, write, [first, second]) = (&look, &write, &committed);
        let readers = [(); 2].map(|()| scope.spawn(look));
        let writers = [(A, first), (B, second)].map(|of| scope.spawn(move || write(of)));
        let wrote = writers.map(thread::ScopedJoinHandle::join);
        done.store(true, Ordering::Relaxed);
        wrote.into_iter().chain(readers.map(thread::ScopedJoinHandle::join)).for_each(Result::unwrap);
    });
    assert_eq!(seen(&store.snapshot().unwrap()), [rounds; 2]);
}

/// Random numbers by Marsaglia's xorshift64: reproducible, and no dependency.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// Returns a random index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(u64::try_from(len).unwrap())).unwrap()
    }
}
