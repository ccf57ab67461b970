//! Each failure to open has its own error that names the path.

use std::{
    fs,
    io::{BufRead, BufReader},
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use redb::{Database, TableDefinition};
use slate_store::{
    Access, Durability, Error, SizeDetail, Store, TransactionExt,
    redb::{Options, RedbStore},
};

use crate::tools::{LONG, keys, open, open_error, put};

const EVERY: [Access; 3] = [Access::CreateOrOpen, Access::Open, Access::ReadOnly];

fn made(folder: &Path) -> PathBuf {
    let path = folder.join("db");
    put(&open(&path), b"a", b"1", Durability::Sync).unwrap();
    path
}

#[test]
fn a_missing_file_is_named() {
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
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "no file was created");
}

#[test]
fn other_files_are_rejected_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    for bytes in [&b""[..], b"r", b"hello, not a database at all", &[0; 8192], b"redb"] {
        fs::write(&path, bytes).unwrap();
        for access in EVERY {
            let error = open_error(&path, access);
            assert!(matches!(error, Error::WrongFormat(_)) && error.path() == Some(&path), "{error}");
        }
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    for access in EVERY {
        let error = open_error(folder.path(), access);
        assert!(matches!(error, Error::WrongFormat(_)) && error.to_string().contains("folder"), "{error}");
    }
    let error = open_error(&path.join("below a file"), Access::CreateOrOpen);
    assert!(matches!(error, Error::Missing(_)), "{error}");
}

#[test]
fn foreign_redb_files_are_rejected_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("foreign");
    let foreign = |tables: &[&str]| {
        let _ = fs::remove_file(&path);
        let database = Database::create(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        for table in tables {
            transaction.open_table(TableDefinition::<&str, u64>::new(table)).unwrap().insert("a", 1).unwrap();
        }
        transaction.commit().unwrap();
    };
    // With other tables; without tables; with Slate's table of the layout version, but of another type.
    for tables in [&["k00000001"][..], &[], &["slate"]] {
        foreign(tables);
        for access in EVERY {
            let error = open_error(&path, access);
            assert!(matches!(error, Error::WrongFormat(_)) && error.path() == Some(&path), "{tables:?}: {error}");
        }
    }
}

#[test]
fn files_of_a_newer_slate_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let database = Database::open(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(TableDefinition::<(), u32>::new("slate")).unwrap().insert((), 2).unwrap();
    transaction.commit().unwrap();
    drop(database);
    for access in EVERY {
        let error = open_error(&path, access);
        assert!(matches!(error, Error::NewerVersion(_)) && error.path() == Some(&path), "{error}");
    }
}

#[test]
fn files_of_a_newer_redb_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    (bytes[64], bytes[64 + 128]) = (4, 4);
    fs::write(&path, bytes).unwrap();
    for access in EVERY {
        let error = open_error(&path, access);
        assert!(matches!(error, Error::NewerVersion(_)) && error.path() == Some(&path), "{error}");
    }
}

#[test]
fn files_of_an_older_redb_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    (bytes[64], bytes[64 + 128]) = (2, 2);
    fs::write(&path, bytes).unwrap();
    let error = open_error(&path, Access::CreateOrOpen);
    assert!(matches!(error, Error::WrongFormat(_)) && error.to_string().contains("older"), "{error}");
}

#[test]
fn a_damaged_header_is_distinguished_from_a_foreign_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[12..16].fill(0xff); // The size of a page.
    fs::write(&path, bytes).unwrap();
    let error = open_error(&path, Access::CreateOrOpen);
    assert!(matches!(error, Error::Corrupt(_)) && error.path() == Some(&path), "{error}");
}

#[test]
fn creation_leaves_no_temporary_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["db"]);
    assert_eq!(keys(&RedbStore::open(&path, &Options::default().access(Access::Open)).unwrap()), [b"a"]);
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
                    match RedbStore::open(path, &Options::default()) {
                        Ok(store) => return put(&store, &[number], b"", Durability::Sync).unwrap(),
                        Err(error) => assert!(matches!(error, Error::Locked(_)), "{error}"),
                    }
                    std::thread::yield_now();
                }
            });
        }
    });
    assert_eq!(keys(&open(&path)).len(), 8);
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
    drop(other.stdin.take());
    said.for_each(drop); // Reads the rest, so that the test runner can write its last lines.
    assert!(other.wait().unwrap().success());
    assert_eq!(keys(&open(&path)), [b"a"]);
}

#[test]
fn a_database_opened_read_only_rejects_writers() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    let read_only = Options::default().access(Access::ReadOnly);
    let store = RedbStore::open(&path, &read_only).unwrap();
    let other = RedbStore::open(&path, &read_only).unwrap();
    assert_eq!((keys(&store), keys(&other)), (vec![b"a".to_vec()], vec![b"a".to_vec()]), "several handles may read it");
    let error = store.begin(LONG).err().unwrap();
    assert!(matches!(error, Error::ReadOnly(_)) && error.path() == Some(&path), "{error}");
    assert!(matches!(store.drop_keyspace(crate::tools::A, LONG), Err(Error::ReadOnly(_))));
    store.flush().unwrap();
    store.backup(&folder.path().join("copy")).unwrap();
    assert_eq!(keys(&open(&folder.path().join("copy"))), [b"a"]);
    assert!(matches!(open_error(&path, Access::CreateOrOpen), Error::Locked(_)), "no writer beside readers");
}

#[test]
fn a_reader_repairs_a_database_that_was_not_closed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (folder.path().join("db"), folder.path().join("copy"));
    let store = open(&path);
    put(&store, b"a", b"1", Durability::Sync).unwrap();
    fs::copy(&path, &copy).unwrap();
    let read_only = Options::default().access(Access::ReadOnly);
    for _ in 0..2 {
        let reader = RedbStore::open(&copy, &read_only).unwrap();
        assert_eq!(keys(&reader), [b"a"]);
        assert!(matches!(reader.drop_keyspace(crate::tools::A, LONG), Err(Error::ReadOnly(_))));
    }
    assert_eq!(keys(&open(&copy)), [b"a"]);
}

#[test]
fn a_backup_opens_as_a_database_with_all_commits() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (made(folder.path()), folder.path().join("copy"));
    let store = open(&path);
    let many: Vec<[u8; 4]> = (0..3_000_u32).map(u32::to_be_bytes).collect();
    let mut transaction = crate::tools::begin(&store);
    use slate_store::Transaction;
    many.iter().for_each(|key| transaction.put(slate_store::Keyspace(7), key, &[0; 300]).unwrap());
    transaction.commit(Durability::Deferred).unwrap();
    store.backup(&copy).unwrap();
    put(&store, b"b", b"later", Durability::Sync).unwrap();
    let copied = RedbStore::open(&copy, &Options::default().access(Access::ReadOnly)).unwrap();
    assert_eq!(keys(&copied), [b"a"]);
    use slate_store::View;
    let count = copied.snapshot().unwrap().count(slate_store::Keyspace(7), slate_store::Bounds::ALL, |_| true);
    assert_eq!(count.unwrap(), Some(3_000));
}

#[test]
fn a_backup_that_is_ended_leaves_nothing_and_the_database_usable() {
    let folder = tempfile::tempdir().unwrap();
    let (path, copy) = (made(folder.path()), folder.path().join("copy"));
    let store = open(&path);
    let mut transaction = crate::tools::begin(&store);
    use slate_store::Transaction;
    (0..2_000_u32).for_each(|key| transaction.put(crate::tools::A, &key.to_be_bytes(), b"value").unwrap());
    transaction.commit(Durability::Sync).unwrap();
    let mut seen = Vec::new();
    let mut third = |copied, all| {
        seen.push((copied, all));
        if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert!(store.backup_while(&copy, &mut third).unwrap().is_break());
    // Two more entries: of `made`, and the number of the last commit.
    assert_eq!(seen, [(0, 2_002), (256, 2_002), (512, 2_002)]);
    let mut panics = |_, _| panic!("the caller's");
    let payload = catch_unwind(AssertUnwindSafe(|| store.backup_while(&copy, &mut panics))).unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"the caller's"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "only the database");
    put(&store, b"b", b"later", Durability::Sync).unwrap();
    store.backup(&copy).unwrap();
}

#[test]
fn the_size_on_disk_is_that_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    assert_eq!(open(&path).size(SizeDetail::Known).unwrap().on_disk, Some(fs::metadata(&path).unwrap().len()));
}

#[cfg(unix)]
#[test]
fn a_write_protected_file_is_read_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = made(folder.path());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    if fs::OpenOptions::new().write(true).open(&path).is_ok() {
        return; // Permissions do not bind the superuser.
    }
    for access in [Access::CreateOrOpen, Access::Open] {
        let error = open_error(&path, access);
        assert!(matches!(error, Error::ReadOnly(_)) && error.path() == Some(&path), "{error}");
    }
    assert!(RedbStore::open(&path, &Options::default().access(Access::ReadOnly)).is_ok());
}
