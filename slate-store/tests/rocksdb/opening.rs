//! Each failure to open has its own error that names the path. Also tests the files of a database.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use slate_store::{
    Access, Bounds, Durability, Error, Keyspace, PointReader, SizeDetail, Store, Transaction, TransactionExt, View,
    rocksdb::{Options, RocksStore},
};

use crate::tools::{A, LONG, begin, keys, made, names, open, open_error, put};

const EVERY: [Access; 3] = [Access::CreateOrOpen, Access::Open, Access::ReadOnly];

#[test]
fn a_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nothing");
    for access in [Access::Open, Access::ReadOnly] {
        let error = open_error(&path, access);
        assert!(matches!(error, Error::Missing(_)) && error.path() == Some(&path), "{error}");
    }
    let path = folder.path().join("no such folder").join("db");
    for access in EVERY {
        let error = open_error(&path, access);
        assert!(matches!(error, Error::Missing(_)), "{error}");
        assert!(error.to_string().contains("no such folder"), "{error}");
    }
    assert!(names(folder.path()).is_empty(), "no file was created");
}

#[test]
fn a_database_is_created_in_an_empty_folder_only_if_allowed() {
    let folder = tempfile::tempdir().unwrap();
    for access in [Access::Open, Access::ReadOnly] {
        let error = open_error(folder.path(), access);
        assert!(matches!(error, Error::Missing(_)) && error.to_string().contains("empty"), "{error}");
    }
    assert!(names(folder.path()).is_empty());
    put(&open(folder.path()), b"a", b"1", Durability::Sync).unwrap();
    assert_eq!(keys(&open(folder.path())), [b"a"]);
}

#[test]
fn other_folders_are_rejected_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, b"hello, not a database at all").unwrap();
    for access in EVERY {
        let error = open_error(&file, access);
        assert!(matches!(error, Error::WrongFormat(_)) && error.path() == Some(&file), "{error}");
        let error = open_error(folder.path(), access);
        assert!(matches!(error, Error::WrongFormat(_)) && error.path() == Some(folder.path()), "{error}");
    }
    assert_eq!(names(folder.path()), ["file"]);
    let error = open_error(&file.join("below a file"), Access::CreateOrOpen);
    assert!(matches!(error, Error::Missing(_)), "{error}");
}

#[test]
fn foreign_rocksdb_databases_are_rejected_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    fs::remove_file(path.join("SLATE")).unwrap();
    let before = names(&path);
    for access in EVERY {
        let error = open_error(&path, access);
        assert!(
            matches!(error, Error::WrongFormat(_)) && error.to_string().contains("Slate did not create"),
            "{error}"
        );
        assert_eq!(error.path(), Some(&*path));
    }
    assert_eq!(names(&path), before);
}

#[test]
fn databases_of_a_newer_slate_are_rejected_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    fs::write(path.join("SLATE"), "slate rocksdb layout 2\n").unwrap();
    let before = names(&path);
    for access in EVERY {
        let error = open_error(&path, access);
        assert!(matches!(error, Error::NewerVersion(_)) && error.path() == Some(&path), "{error}");
    }
    assert_eq!(names(&path), before);
}

#[test]
fn a_malformed_layout_version_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    for text in ["", "slate rocksdb layout", "slate rocksdb layout 1", "slate rocksdb layout 0\n", "\u{fffd}\n"] {
        fs::write(path.join("SLATE"), text).unwrap();
        for access in EVERY {
            let error = open_error(&path, access);
            assert!(matches!(error, Error::WrongFormat(_)) && error.path() == Some(&path), "{text:?}: {error}");
        }
    }
    fs::write(path.join("SLATE"), "slate rocksdb layout 1\n").unwrap();
    assert_eq!(keys(&open(&path)), [b"a"]);
}

#[test]
fn a_database_without_its_current_file_is_damaged_not_new() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    fs::remove_file(path.join("CURRENT")).unwrap();
    for access in EVERY {
        let error = open_error(&path, access);
        assert!(matches!(error, Error::Corrupt(_)) && error.path() == Some(&path), "{error}");
    }
    assert!(names(&path).iter().any(|name| name.ends_with(".log")), "existing files remain");
}

#[test]
fn a_damaged_manifest_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let manifest = names(&path).into_iter().find(|name| name.starts_with("MANIFEST")).unwrap();
    let mut bytes = fs::read(path.join(&manifest)).unwrap();
    bytes[12..20].fill(0xff);
    fs::write(path.join(&manifest), bytes).unwrap();
    let error = open_error(&path, Access::Open);
    assert!(matches!(error, Error::Corrupt(_)) && error.path() == Some(&path), "{error}");
}

#[test]
fn concurrent_opens_create_one_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    std::thread::scope(|scope| {
        for number in 0..8_u8 {
            let path = &path;
            scope.spawn(move || {
                loop {
                    match RocksStore::open(path, &Options::default()) {
                        Ok(store) => return put(&store, &[number], b"", Durability::Sync).unwrap(),
                        Err(error) => assert!(matches!(error, Error::Locked(_)), "{error}"),
                    }
                    std::thread::yield_now();
                }
            });
        }
    });
    assert_eq!(keys(&open(&path)).len(), 8);
    assert!(names(&path).iter().all(|name| !name.contains(".part")), "no temporary file remains");
}

#[test]
fn an_open_database_is_locked_in_this_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let store = open(&path);
    for access in EVERY {
        let error = open_error(&path, access);
        assert!(matches!(error, Error::Locked(_)) && error.path() == Some(&path), "{error}");
    }
    // A snapshot keeps the database open.
    let snapshot = store.snapshot().unwrap();
    drop(store);
    assert!(matches!(open_error(&path, Access::CreateOrOpen), Error::Locked(_)));
    drop(snapshot);
    drop(open(&path));
}

/// Not a test by itself: the next test runs it by name in another process.
#[test]
fn held_open_by_another_process() {
    let Some(path) = std::env::var_os("SLATE_TEST_HOLD_OPEN") else { return };
    let _held = open(Path::new(&path));
    println!("\nheld");
    let _ = std::io::stdin().lines().next();
}

#[test]
fn an_open_database_is_locked_in_another_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "opening::held_open_by_another_process", "--nocapture"])
        .env("SLATE_TEST_HOLD_OPEN", &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap() == "held"));
    for access in EVERY {
        let error = open_error(&path, access);
        assert!(matches!(error, Error::Locked(_)) && error.path() == Some(&path), "{error}");
    }
    // The process is killed, which releases its lock.
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(keys(&open(&path)), [b"a"]);
}

#[test]
fn the_lock_of_rocksdb_itself_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let store = open(&path);
    // The directory as a program sees it that does not know Slate's file of the layout version.
    fs::rename(path.join("SLATE"), path.join("aside")).unwrap();
    fs::write(path.join("SLATE"), "slate rocksdb layout 1\n").unwrap();
    let error = open_error(&path, Access::Open);
    assert!(matches!(error, Error::Locked(_)) && error.path() == Some(&path), "{error}");
    drop(store);
}

#[test]
fn a_database_opened_read_only_rejects_writers() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let read_only = Options::default().access(Access::ReadOnly);
    let store = RocksStore::open(&path, &read_only).unwrap();
    let other = RocksStore::open(&path, &read_only).unwrap();
    assert_eq!((keys(&store), keys(&other)), (vec![b"a".to_vec()], vec![b"a".to_vec()]), "several handles may read it");
    let error = store.begin(LONG).err().unwrap();
    assert!(matches!(error, Error::ReadOnly(_)) && error.path() == Some(&path), "{error}");
    assert!(matches!(store.drop_keyspace(A, LONG), Err(Error::ReadOnly(_))));
    store.flush().unwrap();
    let mut points = store.snapshot().unwrap().point_reader().unwrap();
    points.load(&[(A, b"b"), (A, b"a")]).unwrap();
    assert_eq!((points.loaded(0), points.loaded(1)), (None, Some(&b"1"[..])));
    assert!(store.size(SizeDetail::Known).unwrap().on_disk.unwrap() > 0);
    store.backup(&folder.path().join("copy")).unwrap();
    assert_eq!(keys(&open(&folder.path().join("copy"))), [b"a"]);
    assert!(matches!(open_error(&path, Access::CreateOrOpen), Error::Locked(_)), "no writer beside readers");
}

#[test]
fn reading_only_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let before = names(&path);
    let store = RocksStore::open(&path, &Options::default().access(Access::ReadOnly)).unwrap();
    assert_eq!(keys(&store), [b"a"]);
    drop(store);
    assert_eq!(names(&path), before);
}

#[test]
fn a_backup_opens_as_a_database_with_all_commits() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (made(folder.path()), folder.path().join("copy"));
    let store = open(&path);
    let mut transaction = begin(&store);
    for key in 0..3_000_u32 {
        transaction.put(Keyspace(7), &key.to_be_bytes(), &[0; 300]).unwrap();
    }
    transaction.commit(Durability::Deferred).unwrap();
    store.backup(&copy).unwrap();
    assert!(matches!(store.backup(&copy), Err(Error::Exists(_))));
    put(&store, b"b", b"later", Durability::Sync).unwrap();
    store.drop_keyspace(Keyspace(7), LONG).unwrap();
    for access in [Access::ReadOnly, Access::Open] {
        let copied = RocksStore::open(&copy, &Options::default().access(access)).unwrap();
        assert_eq!(keys(&copied), [b"a"]);
        let count = copied.snapshot().unwrap().count(Keyspace(7), Bounds::ALL, |_| true);
        assert_eq!(count.unwrap(), Some(3_000));
    }
    // The two databases share only files.
    let copied = open(&copy);
    put(&copied, b"c", b"in the copy", Durability::Sync).unwrap();
    drop((store, copied));
    fs::remove_dir_all(&copy).unwrap();
    assert_eq!(keys(&open(&path)), [b"a", b"b"]);
}

#[test]
fn a_backup_during_writes_shows_one_commit() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (made(folder.path()), folder.path().join("copy"));
    let store = open(&path);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0_u32.. {
                let mut transaction = begin(&store);
                for keyspace in [A, crate::tools::B] {
                    transaction.put(keyspace, &round.to_be_bytes(), &[0; 200]).unwrap();
                }
                transaction.commit(Durability::Deferred).unwrap();
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
            }
        });
        while keys(&store).len() < 200 {
            std::thread::yield_now();
        }
        store.backup(&copy).unwrap();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let copied = open(&copy);
    let rounds = crate::tools::keys_of(&copied, crate::tools::B).unwrap();
    assert!(rounds.len() >= 200);
    assert!(rounds.iter().zip(0_u32..).all(|(key, round)| **key == round.to_be_bytes()), "no hole");
    assert_eq!(keys(&copied).len(), rounds.len() + 1, "a commit is complete in one keyspace only");
}

#[test]
fn the_size_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let store = open(&path);
    let size = store.size(SizeDetail::Known).unwrap();
    let files = names(&path).iter().map(|name| fs::metadata(path.join(name)).unwrap().len()).sum::<u64>();
    assert_eq!(size.on_disk, Some(files));
    assert!(size.in_memory.unwrap() > 0 && size.data.is_none());
}

#[cfg(unix)]
#[test]
fn a_write_protected_folder_is_read_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let mark = path.join("SLATE");
    fs::set_permissions(&mark, fs::Permissions::from_mode(0o444)).unwrap();
    if fs::OpenOptions::new().write(true).open(&mark).is_ok() {
        return; // Permissions do not restrict the superuser.
    }
    for access in [Access::CreateOrOpen, Access::Open] {
        let error = open_error(&path, access);
        assert!(matches!(error, Error::ReadOnly(_)) && error.path() == Some(&path), "{error}");
    }
    assert!(RocksStore::open(&path, &Options::default().access(Access::ReadOnly)).is_ok());
}
