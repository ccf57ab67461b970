//! Concurrent writers: which one commits, which one gets a conflict, and that no write is lost.

use std::{collections::BTreeMap, thread};

use super::{
    Fixture,
    tools::{A, B, KeyAndValue, NOW, Random, Writes, all, begin, commit, get, number, put, scan, transact},
};
use slate_store::{
    Bounds, Durability, Error, Guard, Keyspace, LastWrites, Store, Transaction, TransactionExt, Version, View,
};

pub fn the_second_of_two_writers_gets_a_retryable_error<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1")]);
    let mut first = begin(&store);
    first.put(A, b"a", b"2").unwrap();
    let mut second = begin(&store);
    second.put(A, b"a", b"3").unwrap();
    second.put(B, b"x", b"3").unwrap();
    commit(first);
    assert!(second.commit(Durability::Sync).unwrap_err().is_retryable());
    let view = store.snapshot().unwrap();
    assert_eq!(
        (get(&view, A, "a"), all(&view, B)),
        (Some("2".into()), String::new()),
        "no write of the conflicting transaction is visible"
    );
    put(&store, A, &[("a", "4")]);
    assert_eq!(get(&store.snapshot().unwrap(), A, "a"), Some("4".into()), "the retry succeeds");
}

/// Reads, commits, flushes and drops complete while a transaction is open, also on the transaction's thread.
pub fn nothing_waits_for_an_open_transaction<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, B, &[("x", "1")]);
    let mut open = begin(&store);
    open.put(A, b"a", b"1").unwrap();
    put(&store, A, &[("b", "1")]);
    store.flush().unwrap();
    store.drop_keyspace(B, NOW).unwrap();
    let mut second = store.begin(NOW).unwrap();
    second.put(A, b"c", b"1").unwrap();
    let moved = thread::scope(|scope| scope.spawn(|| open.commit(Durability::Sync)).join().unwrap());
    moved.unwrap();
    commit(second);
    let view = store.snapshot().unwrap();
    assert_eq!((all(&view, A), all(&view, B)), ("abc".into(), String::new()));
}

/// With the capability `ranges_conflict`, deleting a range also deletes keys that others committed in it before, and conflicts
/// with transactions that write to it and commit later. Other stores delete only the keys of the view.
pub fn a_deleted_range_conflicts_with_later_commits<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "1"), ("c", "1")]);
    let mut deleter = begin(&store);
    let (mut within, mut guard, mut beside) = (begin(&store), begin(&store), begin(&store));
    put(&store, A, &[("bb", "later")]);
    deleter.delete_range(A, super::tools::within("b", "c")).unwrap();
    within.put(A, b"new in b", b"1").unwrap();
    within.put(A, b"bc", b"1").unwrap();
    guard.guard(A, b"b", Guard::Shared).unwrap();
    guard.put(B, b"x", b"1").unwrap();
    beside.put(A, b"c", b"2").unwrap();
    commit(deleter);
    if !store.capabilities().ranges_conflict {
        // The deleting transaction deletes what its view shows, and conflicts over these keys alone.
        assert!(guard.commit(Durability::Sync).unwrap_err().is_retryable());
        [within, beside].into_iter().for_each(commit);
        assert_eq!(all(&store.snapshot().unwrap(), A), "abbbccnew in b");
        return;
    }
    for transaction in [within, guard] {
        assert!(transaction.commit(Durability::Sync).unwrap_err().is_retryable());
    }
    commit(beside);
    let view = store.snapshot().unwrap();
    assert_eq!((all(&view, A), get(&view, A, "c")), ("ac".into(), Some("2".into())));
}

/// The writes of the last stage conflict as others do, in both directions.
pub fn the_last_stage_of_a_commit_conflicts_as_other_writes_do<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let write =
        |key: &'static [u8]| move |_: Version, last: &mut dyn LastWrites| last.write(A, &[(key, Some(b"last"))]);
    let (mut early, mut late, mut beside) = (begin(&store), begin(&store), begin(&store));
    early.put(B, b"early", b"1").unwrap();
    late.put(A, b"late", b"1").unwrap();
    beside.put(A, b"beside", b"1").unwrap();
    put(&store, A, &[("early", "1")]);
    let refused = early.commit_with(Durability::Sync, &mut write(b"early")).unwrap_err();
    assert!(refused.is_retryable(), "{refused}");
    assert!(refused.key().is_none_or(|key| key == (A, &b"early"[..])));
    begin(&store).commit_with(Durability::Sync, &mut write(b"late")).unwrap();
    assert!(late.commit(Durability::Sync).unwrap_err().is_retryable());
    commit(beside);
    let view = store.snapshot().unwrap();
    assert_eq!((all(&view, A), all(&view, B)), ("besideearlylate".into(), String::new()));
    assert_eq!(get(&view, A, "early"), Some("1".into()));
}

pub fn a_transaction_that_does_not_wait_commits_or_conflicts<S: Store>(fixture: &Fixture<S>) {
    const WRITERS: u64 = 3;
    const EACH: u64 = 200;
    let store = fixture.open();
    let increment = |transaction: &mut S::Transaction| {
        let next = number(&transaction.view(), A, b"n") + 1;
        transaction.put(A, b"n", &next.to_be_bytes()).unwrap();
    };
    let try_increment = |mut transaction: S::Transaction| {
        increment(&mut transaction);
        match transaction.commit(Durability::Deferred) {
            Ok(_) => true,
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                false
            }
        }
    };
    let write = || {
        for _ in 0..EACH {
            // A transaction that is dropped must not block or change anything.
            drop(store.try_begin());
            if !store.try_begin().is_some_and(try_increment) {
                transact(&store, Durability::Deferred, increment);
            }
        }
    };
    thread::scope(|scope| (0..WRITERS).for_each(|_| drop(scope.spawn(write))));
    assert_eq!(number(&store.snapshot().unwrap(), A, b"n"), WRITERS * EACH);
}

pub fn writers_of_different_keys_do_not_conflict<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "1"), ("c", "1")]);
    let (mut first, mut second, mut third) = (begin(&store), begin(&store), begin(&store));
    first.put(A, b"a", b"2").unwrap();
    first.put(A, b"new", b"2").unwrap();
    second.delete(A, b"b").unwrap();
    second.put(B, b"x", b"2").unwrap();
    third.put(B, b"y", b"2").unwrap();
    third.delete(A, b"never there").unwrap();
    [first, second, third].into_iter().for_each(commit);
    let view = store.snapshot().unwrap();
    assert_eq!((all(&view, A), all(&view, B)), ("acnew".into(), "xy".into()));
    assert_eq!(get(&view, A, "a"), Some("2".into()));
}

pub fn keys_deleted_by_other_transactions_stay_deleted<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "1")]);
    let (mut writer, mut deleter) = (begin(&store), begin(&store));
    writer.put(A, b"c", b"2").unwrap();
    deleter.delete_each(A, Bounds::ALL);
    commit(deleter);
    commit(writer);
    assert_eq!(all(&store.snapshot().unwrap(), A), "c");
}

/// Runs `second` in a transaction and commits `others` one by one before it commits. Its commit must then conflict.
/// Returns the store.
fn conflicts<S: Store>(
    fixture: &Fixture<S>,
    others: &[fn(&mut S::Transaction)],
    second: impl Fn(&mut S::Transaction),
) -> S {
    let store = fixture.open();
    put(&store, A, &[("a", "1")]);
    // The keyspace is emptied again. A store may treat it differently from one that was never written to.
    put(&store, Keyspace(3), &[("gone", "")]);
    transact(&store, Durability::Sync, |transaction| transaction.delete(Keyspace(3), b"gone").unwrap());
    let mut transaction = begin(&store);
    second(&mut transaction);
    for other in others {
        transact(&store, Durability::Sync, other);
    }
    let error = transaction.commit(Durability::Sync).unwrap_err();
    assert!(error.is_retryable(), "{error}");
    store
}

pub fn writing_an_equal_value_conflicts<S: Store>(fixture: &Fixture<S>) {
    let same = |transaction: &mut S::Transaction| transaction.put(A, b"a", b"1").unwrap();
    conflicts(fixture, &[same], same);
    let empty = |transaction: &mut S::Transaction| transaction.put(B, b"", b"").unwrap();
    conflicts(fixture, &[empty], empty);
}

/// A store may discard records of commits that no open transaction needs, but must still detect a second put of a key.
pub fn a_repeated_put_conflicts_after_earlier_puts_of_the_key<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", ""), ("x", "")]);
    let (mut deleter, witness) = (begin(&store), begin(&store));
    deleter.delete(A, b"x").unwrap();
    commit(deleter);
    drop(witness);
    // A few more transactions than at the first put.
    for _ in 0..6 {
        let (mut first, mut second) = (begin(&store), begin(&store));
        first.put(A, b"a", b"").unwrap();
        second.put(A, b"a", b"v").unwrap();
        commit(first);
        assert!(second.commit(Durability::Sync).unwrap_err().is_retryable());
    }
    assert_eq!(get(&store.snapshot().unwrap(), A, "a"), Some(String::new()));
}

pub fn a_key_deleted_and_made_again_conflicts<S: Store>(fixture: &Fixture<S>) {
    let delete = |transaction: &mut S::Transaction| transaction.delete(A, b"a").unwrap();
    let make = |transaction: &mut S::Transaction| transaction.put(A, b"a", b"1").unwrap();
    conflicts(fixture, &[delete, make], make);
    conflicts(fixture, &[delete, make], delete);
    conflicts(fixture, &[delete, make], |transaction| transaction.guard(A, b"a", Guard::Shared).unwrap());
}

pub fn a_key_made_and_deleted_again_conflicts<S: Store>(fixture: &Fixture<S>) {
    let make = |transaction: &mut S::Transaction| transaction.put(A, b"new", b"1").unwrap();
    let delete = |transaction: &mut S::Transaction| transaction.delete(A, b"new").unwrap();
    conflicts(fixture, &[make, delete], make);
    conflicts(fixture, &[make, delete], |transaction| transaction.guard(A, b"new", Guard::Shared).unwrap());
    // The same holds in a keyspace that is empty before and after.
    let make = |transaction: &mut S::Transaction| transaction.put(B, b"new", b"1").unwrap();
    let delete = |transaction: &mut S::Transaction| transaction.delete(B, b"new").unwrap();
    conflicts(fixture, &[make, delete], make);
    let make = |transaction: &mut S::Transaction| transaction.put(Keyspace(3), b"new", b"1").unwrap();
    let delete = |transaction: &mut S::Transaction| transaction.delete(Keyspace(3), b"new").unwrap();
    conflicts(fixture, &[make, delete], make);
    conflicts(fixture, &[make, delete], |transaction| transaction.guard(Keyspace(3), b"new", Guard::Shared).unwrap());
}

pub fn deleting_a_key_that_another_transaction_changed_conflicts<S: Store>(fixture: &Fixture<S>) {
    let delete = |transaction: &mut S::Transaction| transaction.delete(A, b"a").unwrap();
    let change = |transaction: &mut S::Transaction| transaction.put(A, b"a", b"2").unwrap();
    let range = |transaction: &mut S::Transaction| transaction.delete_each(A, Bounds::ALL);
    for others in [delete, change, range] {
        for second in [delete, change, range] {
            conflicts(fixture, &[others], second);
        }
    }
    let store = conflicts(fixture, &[change], delete);
    assert_eq!(get(&store.snapshot().unwrap(), A, "a"), Some("2".into()));
}

pub fn a_guarded_key_that_was_created_conflicts<S: Store>(fixture: &Fixture<S>) {
    let create = |transaction: &mut S::Transaction| transaction.put(A, b"new", b"1").unwrap();
    let guard = |transaction: &mut S::Transaction| {
        transaction.guard(A, b"new", Guard::Shared).unwrap();
        transaction.put(B, b"x", b"1").unwrap();
    };
    let store = conflicts(fixture, &[create], guard);
    assert_eq!(all(&store.snapshot().unwrap(), B), "");
}

pub fn write_skew_is_prevented_by_a_guard<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("on call 1", "yes"), ("on call 2", "yes")]);
    // Each person goes off call if the other one stays on call.
    let leave = |me: &[u8], other: &[u8]| {
        let mut transaction = begin(&store);
        transaction.guard(A, other, Guard::Shared).unwrap();
        let stays = get(&transaction.view(), A, std::str::from_utf8(other).unwrap()) == Some("yes".into());
        if stays {
            transaction.put(A, me, b"no").unwrap();
        }
        transaction
    };
    let (first, second) = (leave(b"on call 1", b"on call 2"), leave(b"on call 2", b"on call 1"));
    commit(first);
    assert!(second.commit(Durability::Sync).unwrap_err().is_retryable());
    assert_eq!(get(&store.snapshot().unwrap(), A, "on call 2"), Some("yes".into()), "one person stays on call");
}

/// A keyspace in which shared guards do not conflict with each other.
fn guarded(store: &impl Store) -> Keyspace {
    if store.capabilities().shared_guards { A } else { Keyspace(0) }
}

/// Opens two transactions that guard one key as given, lets both write other keys, and commits them one after the
/// other. Returns the error of the second.
fn guard_both<S: Store>(store: &S, first: Guard, second: Guard) -> Option<Error> {
    let (mut one, mut two) = (begin(store), begin(store));
    one.guard(guarded(store), b"relied on", first).unwrap();
    one.put(B, b"one", b"1").unwrap();
    two.guard(guarded(store), b"relied on", second).unwrap();
    two.put(B, b"two", b"2").unwrap();
    commit(one);
    two.commit(Durability::Deferred).err()
}

pub fn shared_guards_of_one_key_do_not_conflict<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    assert!(guard_both(&store, Guard::Shared, Guard::Shared).is_none());
    thread::scope(|scope| {
        for own in 0..4_u8 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..100_u8 {
                    let mut transaction = begin(store);
                    transaction.guard(guarded(store), b"relied on", Guard::Shared).unwrap();
                    transaction.put(B, &[own, round], b"").unwrap();
                    transaction.commit(Durability::Deferred).unwrap();
                }
            });
        }
    });
}

pub fn an_exclusive_guard_conflicts_with_every_other_guard_and_with_writes<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let guarded = guarded(&store);
    for (first, second) in
        [(Guard::Exclusive, Guard::Shared), (Guard::Shared, Guard::Exclusive), (Guard::Exclusive, Guard::Exclusive)]
    {
        let error = guard_both(&store, first, second).unwrap();
        assert!(error.is_retryable(), "{first:?} before {second:?}: {error}");
    }
    // A transaction with only an exclusive guard still commits.
    let (mut guards, mut writes) = (begin(&store), begin(&store));
    guards.guard(guarded, b"relied on", Guard::Exclusive).unwrap();
    commit(guards);
    writes.put(guarded, b"relied on", b"1").unwrap();
    assert!(writes.commit(Durability::Deferred).unwrap_err().is_retryable());
    let (mut guards, mut writes) = (begin(&store), begin(&store));
    writes.put(guarded, b"relied on", b"1").unwrap();
    commit(writes);
    guards.guard(guarded, b"relied on", Guard::Exclusive).unwrap();
    assert!(guards.commit(Durability::Deferred).unwrap_err().is_retryable());
    assert_eq!(get(&store.snapshot().unwrap(), guarded, "relied on"), Some("1".into()), "a guard changes nothing");
}

pub fn a_counter_under_many_writers_loses_no_increment<S: Store>(fixture: &Fixture<S>) {
    const EACH: u64 = 50;
    let store = fixture.open();
    thread::scope(|scope| {
        for own in 0..4_u8 {
            let store = &store;
            scope.spawn(move || {
                for _ in 0..EACH {
                    transact(store, Durability::Deferred, |transaction| {
                        for key in [&b"all"[..], &[own]] {
                            let next = number(&transaction.view(), A, key) + 1;
                            transaction.put(A, key, &next.to_be_bytes()).unwrap();
                        }
                    });
                }
            });
        }
    });
    let view = store.snapshot().unwrap();
    assert_eq!(number(&view, A, b"all"), 4 * EACH);
    assert!((0..4_u8).all(|own| number(&view, A, &[own]) == EACH));
}

/// Opens several transactions at random. Each must conflict if a concurrent one first committed a write of a key that
/// it wrote or guarded, whatever happened to the key since.
pub fn random_interleavings_conflict_where_they_must<S: Store>(fixture: &Fixture<S>) {
    struct Open<T> {
        transaction: T,
        began: usize,
        sees: BTreeMap<Key, u64>,
        writes: BTreeMap<Key, Option<u64>>,
        guards: Vec<Key>,
    }
    type Key = (Keyspace, u8);

    let store = fixture.open();
    let mut random = Random::new(17);
    let mut open: Vec<Open<S::Transaction>> = Vec::new();
    let mut model = BTreeMap::<Key, u64>::new();
    // The commit that wrote each key last, by its number.
    let mut written = BTreeMap::<Key, usize>::new();
    let (mut commits, mut needless) = (0, 0);
    for round in 0..6_000_u64 {
        if open.is_empty() || (open.len() < 4 && random.below(4) == 0) {
            let sees = model.clone();
            let transaction = begin(&store);
            open.push(Open { transaction, began: commits, sees, writes: BTreeMap::new(), guards: Vec::new() });
        }
        let which = usize::try_from(random.below(open.len().try_into().unwrap())).unwrap();
        let key = (Keyspace(random.below(3).try_into().unwrap()), random.below(12).try_into().unwrap());
        let mine = &mut open[which];
        match random.below(10) {
            0..=3 => {
                mine.transaction.put(key.0, &[key.1], &round.to_be_bytes()).unwrap();
                mine.sees.insert(key, round);
                mine.writes.insert(key, Some(round));
            }
            4 | 5 => {
                mine.transaction.delete(key.0, &[key.1]).unwrap();
                mine.sees.remove(&key);
                mine.writes.insert(key, None);
            }
            6 => {
                mine.transaction.guard(key.0, &[key.1], Guard::Shared).unwrap();
                mine.guards.push(key);
            }
            7 => {
                let value = mine.sees.get(&key).map_or(0, |value| *value);
                assert_eq!(number(&mine.transaction.view(), key.0, &[key.1]), value, "it reads its own snapshot");
            }
            8 => {
                let mine = open.swap_remove(which);
                let shares = store.capabilities().shared_guards;
                let mut accessed = mine.writes.keys().chain(&mine.guards);
                let must_conflict = accessed.any(|key| written.get(key).is_some_and(|commit| *commit > mine.began));
                match mine.transaction.commit(Durability::Deferred) {
                    Ok(_) => {
                        assert!(!must_conflict, "a conflict was missed");
                        commits += 1;
                        for (key, value) in mine.writes {
                            written.insert(key, commits);
                            match value {
                                Some(value) => drop(model.insert(key, value)),
                                None => drop(model.remove(&key)),
                            }
                        }
                    }
                    Err(error) => {
                        assert!(error.is_retryable(), "{error}");
                        // Guards may conflict with more than they must.
                        needless += usize::from(!must_conflict && (shares || mine.guards.is_empty()));
                    }
                }
            }
            _ => drop(open.swap_remove(which)),
        }
    }
    assert!(commits > 200 && needless * 10 <= commits, "{needless} unnecessary conflicts, {commits} commits");
    let view = store.snapshot().unwrap();
    let found = (0..3).flat_map(|keyspace| {
        super::tools::scan(&view, Keyspace(keyspace), Bounds::ALL)
            .into_iter()
            .map(move |(key, value)| ((Keyspace(keyspace), key[0]), u64::from_be_bytes(value.try_into().unwrap())))
    });
    assert!(found.eq(model));
}

/// A store may apply large commits differently: tests sorted and unsorted writes, with and without reads before the
/// commit, and with and without a concurrent commit.
pub fn large_transactions_commit_and_conflict_like_small_ones<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    let mut model: BTreeMap<(Keyspace, [u8; 8]), Vec<u8>> = BTreeMap::new();
    for (round, (writes, batch, look)) in
        (0_u64..).zip([(300, 1, false), (4_000, 1, false), (4_000, 700, true), (20_000, 900, false), (12_000, 1, true)])
    {
        let mut random = Random::new(round + 1);
        let (mut large, mut other) = (begin(&store), begin(&store));
        other.put(A, b"other", &round.to_be_bytes()).unwrap();
        commit(other);
        let mut made = 0;
        while made < writes {
            let keyspace = if random.below(2) == 0 { A } else { B };
            let (first, value) = (random.below(10_000), random.below(10_000).to_string().into_bytes());
            if batch > 1 {
                let keys: Vec<_> = (0..batch).map(|at| (first + 3 * at).to_be_bytes()).collect();
                let entries: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &value[..])).collect();
                large.put_many(keyspace, &entries).unwrap();
                model.extend(keys.iter().map(|key| ((keyspace, *key), value.clone())));
            } else {
                large.put(keyspace, &first.to_be_bytes(), &value).unwrap();
                model.insert((keyspace, first.to_be_bytes()), value);
            }
            let deleted = random.below(10_000).to_be_bytes();
            large.delete(keyspace, &deleted).unwrap();
            model.remove(&(keyspace, deleted));
            made += batch;
            if look && made >= writes / 2 && made < writes / 2 + batch {
                assert!(!all_entries(&large.view(), B).is_empty());
            }
        }
        commit(large);
        let view = store.snapshot().unwrap();
        for keyspace in [A, B] {
            let expected = model.iter().filter(|((at, _), _)| *at == keyspace);
            let expected: Vec<_> = expected.map(|((_, key), value)| (key.to_vec(), value.clone())).collect();
            assert!(all_entries(&view, keyspace) == expected, "round {round}");
        }
        let (mut loser, mut winner) = (begin(&store), begin(&store));
        for key in 0..writes {
            loser.put(B, &key.to_be_bytes(), b"lost").unwrap();
        }
        winner.put(B, &(writes / 2).to_be_bytes(), b"won").unwrap();
        commit(winner);
        assert!(loser.commit(Durability::Sync).unwrap_err().is_retryable());
        model.insert((B, (writes / 2).to_be_bytes()), b"won".into());
    }
}

/// Returns the entries without the one that another transaction put.
fn all_entries(view: &impl View, keyspace: Keyspace) -> Vec<KeyAndValue> {
    let mut entries = scan(view, keyspace, Bounds::ALL);
    entries.retain(|(key, _)| key != b"other");
    entries
}
