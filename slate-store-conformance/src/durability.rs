//! Reopening a database, and backups. Only a backend's own tests can simulate crashes.

use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use super::{
    Fixture,
    tools::{A, B, LONG, all, begin, get, number, put, scan, transact},
};
use slate_store::{Bounds, Durability, Error, Store, TransactionExt};

pub fn sync_commits_exist_after_reopening<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    if !store.capabilities().persistent {
        return;
    }
    put(&store, A, &[("a", "1"), ("b", "2")]);
    put(&store, B, &[("x", "3")]);
    let mut open = begin(&store);
    open.put(A, b"c", b"never committed").unwrap();
    drop((open, store));
    let view = fixture.open().snapshot().unwrap();
    assert_eq!((all(&view, A), all(&view, B), get(&view, A, "b")), ("ab".into(), "x".into(), Some("2".into())));
}

pub fn deferred_commits_exist_after_a_flush_and_reopening<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    store.flush().unwrap();
    for round in 0..100_u64 {
        transact(&store, Durability::Deferred, |transaction| {
            transaction.put(A, &round.to_be_bytes(), b"deferred").unwrap();
        });
    }
    assert_eq!(scan(&store.snapshot().unwrap(), A, Bounds::ALL).len(), 100, "visible at once");
    store.flush().unwrap();
    store.flush().unwrap();
    if store.capabilities().persistent {
        drop(store);
        assert_eq!(scan(&fixture.open().snapshot().unwrap(), A, Bounds::ALL).len(), 100);
    }
}

pub fn deferred_commits_stay_in_order<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    if !store.capabilities().persistent {
        return;
    }
    for round in 1..=200_u64 {
        let durability = if round == 100 { Durability::Sync } else { Durability::Deferred };
        transact(&store, durability, |transaction| {
            transaction.put(A, b"round", &round.to_be_bytes()).unwrap();
            transaction.put(B, &round.to_be_bytes(), b"").unwrap();
        });
    }
    drop(store);
    let view = fixture.open().snapshot().unwrap();
    let last = number(&view, A, b"round");
    assert!((100..=200).contains(&last), "the sync commit and all before it: {last}");
    let rounds: Vec<_> = scan(&view, B, Bounds::ALL).into_iter().map(|(key, _)| key).collect();
    assert!(rounds.into_iter().eq((1..=last).map(|round| round.to_be_bytes().to_vec())), "no hole");
}

pub fn concurrent_committers_are_all_durable<S: Store>(fixture: &Fixture<S>) {
    const EACH: u64 = 20;
    let store = fixture.open();
    thread::scope(|scope| {
        for own in 0..8_u64 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..EACH {
                    let durability = if round % 4 == 3 { Durability::Deferred } else { Durability::Sync };
                    transact(store, durability, |transaction| {
                        let key = [own.to_be_bytes(), round.to_be_bytes()].concat();
                        transaction.put(A, &key, b"").unwrap();
                    });
                }
            });
        }
    });
    store.flush().unwrap();
    assert_eq!(scan(&store.snapshot().unwrap(), A, Bounds::ALL).len(), 160);
    if store.capabilities().persistent {
        drop(store);
        assert_eq!(scan(&fixture.open().snapshot().unwrap(), A, Bounds::ALL).len(), 160);
    }
}

/// Checks only that the backup is created, because how to open it depends on the backend; the backend's own tests open
/// it.
pub fn a_backup_succeeds_during_an_open_transaction<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    put(&store, A, &[("a", "1"), ("b", "2")]);
    put(&store, B, &[("x", "3")]);
    let to = fixture.folder().join("backup");
    if !store.capabilities().backup {
        assert!(matches!(store.backup(&to), Err(Error::Unsupported(_))));
        return;
    }
    let mut open = begin(&store);
    open.put(A, b"c", b"not committed").unwrap();
    store.backup(&to).unwrap();
    drop(open);
    store.drop_keyspace(A, LONG).unwrap();
    assert!(to.exists());
    let beside: Vec<_> = fs::read_dir(fixture.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        beside.iter().all(|name| !name.to_string_lossy().contains(".part")),
        "no temporary file remains: {beside:?}"
    );
}

/// While a backup is written, only its user can read the unfinished files in its folder.
pub fn a_backup_is_private_until_it_is_complete<S: Store>(fixture: &Fixture<S>) {
    /// Maximum number of backups until the other thread has seen one while it was written.
    const ATTEMPTS: usize = 1_000;
    let store = fixture.open();
    if !store.capabilities().backup {
        return;
    }
    put(&store, A, &[("a", "1"), ("b", "2")]);
    let folder = fixture.folder().join("backups");
    fs::create_dir(&folder).unwrap();
    let (is_over, drafts) = (AtomicBool::new(false), AtomicUsize::new(0));
    let looks = || {
        while !is_over.load(Ordering::SeqCst) {
            for entry in fs::read_dir(&folder).unwrap() {
                let entry = entry.unwrap();
                // A complete backup is named by a number, and its permissions are not checked.
                if entry.file_name().to_string_lossy().parse::<usize>().is_err() && is_private(&entry) {
                    drafts.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    };
    let copied = thread::scope(|scope| {
        let looking = scope.spawn(looks);
        let copied = (0..ATTEMPTS).try_for_each(|nth| {
            let is_seen = drafts.load(Ordering::SeqCst) > 0 || looking.is_finished();
            if is_seen { Ok(()) } else { store.backup(&folder.join(nth.to_string())) }
        });
        is_over.store(true, Ordering::SeqCst);
        looking.join().unwrap();
        copied
    });
    copied.unwrap();
    assert!(drafts.into_inner() > 0, "nothing was in the folder while backups were written");
    for entry in fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(name.to_string_lossy().parse::<usize>().is_ok(), "a temporary file remains: {name:?}");
    }
}

/// Asserts that only the owner has access, and returns true; false if the entry is gone. Other systems than Unix are
/// not checked.
fn is_private(entry: &fs::DirEntry) -> bool {
    let Ok(metadata) = entry.metadata() else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = metadata.permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{entry:?} has the mode {mode:o}");
    }
    #[cfg(not(unix))]
    let _ = metadata;
    true
}

pub fn a_backup_does_not_overwrite_a_file<S: Store>(fixture: &Fixture<S>) {
    let store = fixture.open();
    if !store.capabilities().backup {
        return;
    }
    let to = fixture.folder().join("precious");
    fs::write(&to, b"precious").unwrap();
    let error = store.backup(&to).unwrap_err();
    assert!(matches!(error, Error::Exists(_)) && error.path() == Some(&to), "{error}");
    assert_eq!(fs::read(&to).unwrap(), b"precious");
    let nowhere = fixture.folder().join("no such folder").join("backup");
    assert!(matches!(store.backup(&nowhere), Err(Error::Missing(_))));
}
