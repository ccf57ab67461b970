//! Conflict detection at commit, and the cost of dropping a keyspace.

use slate_store::{
    Access, Durability, Error, Guard, Keyspace, SizeDetail, Store, Transaction, TransactionExt,
    rocksdb::{Options, RocksStore},
};

use crate::tools::{A, LONG, begin, keys, keys_of, made, names, open, put};

/// Commits `count` transactions of 1 MiB each.
fn write_mebibytes(store: &RocksStore, count: u32) {
    let value: Vec<u8> = (0..1_u32 << 18).flat_map(|at| at.wrapping_mul(0x9e37_79b9).to_be_bytes()).collect();
    for number in 0..count {
        let mut transaction = begin(store);
        transaction.put(Keyspace(9), &number.to_be_bytes(), &value).unwrap();
        transaction.commit(Durability::Deferred).unwrap();
    }
}

#[test]
fn conflicts_are_detected_after_write_buffers_were_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let store = RocksStore::open(&folder.path().join("db"), &Options::default().write_buffer_bytes(4 << 20)).unwrap();
    let (mut apart, mut meets) = (begin(&store), begin(&store));
    apart.put(A, b"apart", b"").unwrap();
    meets.put(A, b"meets", b"").unwrap();
    put(&store, b"meets", b"", Durability::Deferred).unwrap();
    write_mebibytes(&store, 20);
    apart.commit(Durability::Sync).unwrap();
    assert!(meets.commit(Durability::Sync).unwrap_err().is_retryable(), "the other transaction's write is detected");
}

#[test]
fn a_transaction_with_only_guards_is_checked_for_conflicts() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&made(folder.path()));
    let guard = || {
        let mut transaction = store.begin(LONG).unwrap();
        transaction.guard(A, b"a", Guard::Shared).unwrap();
        transaction
    };
    guard().commit(Durability::Sync).unwrap();
    let guarded = guard();
    put(&store, b"a", b"2", Durability::Sync).unwrap();
    assert!(matches!(guarded.commit(Durability::Sync), Err(Error::Conflict(_))));
}

#[test]
fn dropping_a_keyspace_writes_little_whatever_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    let mut transaction = begin(&store);
    for number in 0..20_000_u32 {
        for keyspace in [A, Keyspace(2), Keyspace(u32::MAX)] {
            transaction.put(keyspace, &number.to_be_bytes(), b"value").unwrap();
        }
    }
    transaction.commit(Durability::Sync).unwrap();
    let before = store.size(SizeDetail::Known).unwrap().on_disk.unwrap();
    store.drop_keyspace(A, LONG).unwrap();
    let after = store.size(SizeDetail::Known).unwrap().on_disk.unwrap();
    assert!((1..200).contains(&(after - before)), "{before} bytes became {after}");
    store.drop_keyspace(A, LONG).unwrap();
    assert_eq!(
        store.size(SizeDetail::Known).unwrap().on_disk,
        Some(after),
        "dropping an empty keyspace writes nothing"
    );
    store.drop_keyspace(Keyspace(u32::MAX), LONG).unwrap();
    let counts = [A, Keyspace(2), Keyspace(u32::MAX)].map(|keyspace| keys_of(&store, keyspace).unwrap().len());
    assert_eq!(counts, [0, 20_000, 0]);
}

#[test]
fn a_drop_flushes_a_large_write_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    write_mebibytes(&store, 12);
    put(&store, b"a", b"", Durability::Deferred).unwrap();
    store.drop_keyspace(Keyspace(9), LONG).unwrap();
    let written_out = |_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        names(&path).iter().any(|name| name.ends_with(".sst"))
    };
    assert!((0..500).any(written_out), "{:?}", names(&path));
    assert_eq!(keys(&store), [b"a"]);
    assert!(keys_of(&store, Keyspace(9)).unwrap().is_empty());
}

#[test]
fn concurrent_drops_and_commits_leave_no_keys() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("db"));
    std::thread::scope(|scope| {
        for own in 0..3_u8 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..400_u32 {
                    // A caller's catalog entry records whether the keyspace is in use.
                    let mut transaction = store.begin(LONG).unwrap();
                    let keyspace = Keyspace(10 + round / 20);
                    transaction.put(keyspace, &[own], &round.to_be_bytes()).unwrap();
                    match transaction.commit(Durability::Deferred) {
                        Ok(_) => {}
                        Err(error) => assert!(error.is_retryable(), "{error}"),
                    }
                    if own == 0 && round % 20 == 19 {
                        // Written before the drop and committed after it: must conflict.
                        let mut late = store.begin(LONG).unwrap();
                        late.put(keyspace, b"late", b"").unwrap();
                        store.drop_keyspace(keyspace, LONG).unwrap();
                        assert!(late.commit(Durability::Deferred).unwrap_err().is_retryable());
                        assert!(!keys_of(store, keyspace).unwrap().contains(&b"late".to_vec()));
                    }
                }
            });
        }
    });
}

#[test]
fn compaction_frees_dropped_keyspaces_but_not_data_of_open_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&made(folder.path()));
    write_mebibytes(&store, 8);
    let snapshot = store.snapshot().unwrap();
    store.drop_keyspace(Keyspace(9), LONG).unwrap();
    store.compact(LONG).unwrap();
    use slate_store::{Bounds, View};
    assert_eq!(snapshot.count(Keyspace(9), Bounds::ALL, |_| true).unwrap(), Some(8));
    drop(snapshot);
    store.compact(LONG).unwrap();
    // RocksDB removes unused files with a short delay.
    let small = |_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        store.size(SizeDetail::Known).unwrap().on_disk.unwrap() < 1 << 20
    };
    assert!((0..200).any(small), "{:?}", store.size(SizeDetail::Known));
    assert_eq!(keys(&store), [b"a"]);
    drop(store);
    let read_only = RocksStore::open(&folder.path().join("db"), &Options::default().access(Access::ReadOnly)).unwrap();
    assert!(matches!(read_only.compact(LONG), Err(Error::ReadOnly(_))));
}

#[test]
fn closing_writes_a_large_buffer_to_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let store = open(&path);
    let mut transaction = begin(&store);
    for key in 0..16_000_u32 {
        // Compresses to a fraction, as documents do.
        transaction.put(A, &key.to_be_bytes(), &[7; 1_000]).unwrap();
    }
    transaction.commit(Durability::Deferred).unwrap();
    assert!(store.size(SizeDetail::Known).unwrap().on_disk.unwrap() > 12 << 20, "it is in the log");
    drop(store);
    let store = open(&path);
    assert!(store.size(SizeDetail::Known).unwrap().on_disk.unwrap() < 4 << 20);
    assert_eq!(keys(&store).len(), 16_001);
}

/// `SLATE_UPDATES=20000 cargo test -p slate-store --features rocksdb --test rocksdb retains -- --nocapture` prints what docs/tuning.md says.
#[test]
fn what_a_snapshot_retains_is_bounded() {
    const ENTRIES: u32 = 1_000;
    let updates: u32 = std::env::var("SLATE_UPDATES").map_or(2_000, |updates| updates.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let store = open(&made(folder.path()));
    let write =
        |number: u32, byte: u8| put(&store, &(number % ENTRIES).to_be_bytes(), &[byte; 450], Durability::Deferred);
    (0..ENTRIES).for_each(|number| write(number, 1).unwrap());
    store.flush().unwrap();
    let length = || store.size(SizeDetail::Known).unwrap().on_disk.unwrap();
    let (before, snapshot) = (length(), store.snapshot().unwrap());
    assert_eq!(store.oldest_snapshot(), None, "it shows the last commit");
    (0..updates).for_each(|number| write(number, 2).unwrap());
    store.flush().unwrap();
    let held = || store.oldest_snapshot().unwrap().held_bytes.unwrap();
    let (grown, held_by_updates) = (length() - before, held());
    println!("{updates} updates, {grown} bytes more, {held_by_updates} held by the snapshot");
    assert!(grown <= 2 * u64::from(updates) * 500 + (8 << 20), "{grown} bytes");
    let written = u64::from(updates) * 450;
    assert!((written..2 * written).contains(&held_by_updates), "{held_by_updates} bytes");
    let mut transaction = begin(&store);
    (0..ENTRIES / 2).for_each(|number| transaction.delete(A, &number.to_be_bytes()).unwrap());
    transaction.commit(Durability::Deferred).unwrap();
    assert!(held() >= held_by_updates + u64::from(ENTRIES / 2) * 400, "{} bytes", held());
    store.compact(LONG).unwrap();
    assert!(held() <= length() + (1 << 20), "{} bytes", held());
    drop(snapshot);
    assert_eq!(store.oldest_snapshot(), None);
}
