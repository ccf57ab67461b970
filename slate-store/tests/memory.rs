//! Properties of the memory store only: restoring backups, and freeing memory.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, ops::ControlFlow, path::Path, time::Duration};

use slate_store::{
    Bounds, Cursor, Durability, Edge, Error, Keyspace, Result, SizeDetail, Store, Transaction, TransactionExt, View,
    memory::MemoryStore,
};

const A: Keyspace = Keyspace(1);

fn put(store: &MemoryStore, keyspace: Keyspace, entries: &[(&[u8], &[u8])]) {
    let mut transaction = store.begin(Duration::ZERO).unwrap();
    let writes: Vec<_> = entries.iter().map(|(key, value)| (*key, Some(*value))).collect();
    transaction.write(keyspace, &writes).unwrap();
    transaction.commit(Durability::Sync).unwrap();
}

fn scan(store: &MemoryStore, keyspace: Keyspace) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = store.snapshot().unwrap().cursor(keyspace, Bounds::ALL).unwrap();
    let (mut entries, mut more) = (Vec::new(), cursor.seek(Edge::First).unwrap());
    while more {
        let (key, value) = cursor.current().unwrap();
        entries.push((key.to_vec(), value.to_vec()));
        more = cursor.step_forward().unwrap();
    }
    entries
}

fn restore_error(path: &Path) -> Error {
    let restored: Result<MemoryStore> = MemoryStore::restore(path);
    restored.err().unwrap()
}

#[test]
fn a_backup_restores_every_keyspace_as_of_its_commit() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = (folder.path().join("backup"), MemoryStore::new());
    let long = vec![0xff; 60_000];
    put(&store, A, &[(b"", b""), (b"a", b"1"), (&long, &long)]);
    put(&store, Keyspace(u32::MAX), &[(b"x", b"last")]);
    store.backup(&path).unwrap();
    put(&store, A, &[(b"later", b"")]);
    let restored = MemoryStore::restore(&path).unwrap();
    assert_eq!(scan(&restored, A), [(vec![], vec![]), (b"a".to_vec(), b"1".to_vec()), (long.clone(), long)]);
    assert_eq!(scan(&restored, Keyspace(u32::MAX)), [(b"x".to_vec(), b"last".to_vec())]);
    assert_eq!(restored.size(SizeDetail::Known).unwrap().data, Some(1 + 1 + 120_000 + 1 + 4));
    put(&restored, A, &[(b"b", b"2")]);
    assert_eq!(scan(&restored, A).len(), 4);
    let empty = folder.path().join("empty");
    MemoryStore::new().backup(&empty).unwrap();
    assert_eq!(scan(&MemoryStore::restore(&empty).unwrap(), A), []);
}

#[test]
fn a_backup_that_is_ended_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let store = MemoryStore::new();
    let keys: Vec<[u8; 4]> = (0..2_000_u32).map(u32::to_be_bytes).collect();
    put(&store, A, &keys.iter().map(|key| (&key[..], &b"value"[..])).collect::<Vec<_>>());
    let mut seen = Vec::new();
    let mut third = |copied, all| {
        seen.push((copied, all));
        if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert!(store.backup_while(&folder.path().join("copy"), &mut third).unwrap().is_break());
    assert_eq!(seen, [(0, 2_000), (256, 2_000), (512, 2_000)]);
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none());
}

#[test]
fn damaged_and_foreign_backups_fail_with_their_own_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (path, store) = (folder.path().join("backup"), MemoryStore::new());
    put(&store, A, &[(b"key", b"value"), (b"other", b"thing")]);
    store.backup(&path).unwrap();
    let whole = fs::read(&path).unwrap();
    for at in 12..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).unwrap();
        let error = restore_error(&path);
        assert!(matches!(error, Error::Corrupt(_)), "byte {at}: {error}");
        assert_eq!(error.path(), Some(&*path));
    }
    for len in 8..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        assert!(matches!(restore_error(&path), Error::Corrupt(_)), "cut to {len}");
    }
    for foreign in [&b""[..], b"short", b"something else altogether"] {
        fs::write(&path, foreign).unwrap();
        assert!(matches!(restore_error(&path), Error::WrongFormat(_)));
    }
    let mut newer = whole;
    newer[8] = 2;
    fs::write(&path, newer).unwrap();
    assert!(matches!(restore_error(&path), Error::NewerVersion(_)));
    assert!(matches!(restore_error(&folder.path().join("nothing")), Error::Missing(_)));
    assert!(matches!(restore_error(folder.path()), Error::WrongFormat(_)));
}

#[test]
fn clones_share_one_database() {
    let store = MemoryStore::default();
    put(&store.clone(), A, &[(b"a", b"1")]);
    assert_eq!(scan(&store, A).len(), 1);
}

#[test]
fn the_size_changes_with_puts_overwrites_and_deletes() {
    let store = MemoryStore::new();
    let size = || store.size(SizeDetail::Known).unwrap().data.unwrap();
    put(&store, A, &[(b"a", b"12345"), (b"bb", b"")]);
    assert_eq!(size(), 8);
    put(&store, A, &[(b"a", b"1")]);
    assert_eq!(size(), 4);
    // Merged with another transaction's commit.
    let mut transaction = store.begin(Duration::ZERO).unwrap();
    transaction.delete(A, b"bb").unwrap();
    transaction.put(A, b"c", b"123").unwrap();
    put(&store, A, &[(b"d", b"1")]);
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(size(), 2 + 4 + 2);
    let size = store.size(SizeDetail::Known).unwrap();
    assert!(size.in_memory > size.data && size.on_disk.is_none());
}

#[test]
fn transactions_of_one_thread_may_be_open_at_once() {
    let store = MemoryStore::new();
    let mut open: Vec<_> = (0..10).map(|_| store.begin(Duration::ZERO).unwrap()).collect();
    for (number, transaction) in (0_u8..).zip(&mut open) {
        transaction.put(A, &[number], b"").unwrap();
    }
    open.into_iter().rev().for_each(|transaction| {
        transaction.commit(Durability::Sync).unwrap();
    });
    assert_eq!(scan(&store, A).len(), 10);
}
