//! After a crash, the database contains complete commits, without a gap.

use std::{fs, path::Path};

use slate_store::{
    Access, Durability, Error, Store, Transaction, TransactionExt,
    rocksdb::{Options, RocksStore},
};

use crate::tools::{A, B, LONG, begin, copy, keys, keys_of, made, names, open, open_error, put};

/// A transaction over two keyspaces that writes every key that starts with `round`.
fn write_round(store: &RocksStore, round: u8, durability: Durability) {
    let mut transaction = begin(store);
    for number in 0..5_u8 {
        transaction.put(A, &[round, number], &[round; 50]).unwrap();
        transaction.put(B, &[round, number], b"").unwrap();
    }
    transaction.commit(durability).unwrap();
}

/// Checks that each round is complete or absent, without a gap. Returns the number of rounds.
fn whole_rounds(store: &RocksStore) -> usize {
    let keys = keys(store);
    assert_eq!(keys.len() % 5, 0, "a round is incomplete");
    let rounds: Vec<u8> = keys.chunks(5).map(|round| round[0][0]).collect();
    assert!(rounds.iter().zip(0_u8..).all(|(found, expected)| *found == expected), "a hole: {rounds:?}");
    assert_eq!(keys_of(store, B).unwrap(), keys, "a commit is complete in one keyspace only");
    rounds.len()
}

/// Returns the current log file.
fn log(path: &Path) -> std::path::PathBuf {
    path.join(names(path).into_iter().rfind(|name| name.ends_with(".log")).unwrap())
}

#[test]
fn a_crash_of_the_process_loses_no_commit_whatever_its_durability() {
    let folder = tempfile::tempdir().unwrap();
    let (path, crashed) = (folder.path().join("db"), folder.path().join("crashed"));
    let store = open(&path);
    (0..20).for_each(|round| write_round(&store, round, Durability::Deferred));
    let mut open_at_the_time = begin(&store);
    open_at_the_time.put(A, b"never committed", b"").unwrap();
    copy(&path, &crashed);
    assert_eq!(whole_rounds(&open(&crashed)), 20);
    drop(open_at_the_time);
}

#[test]
fn a_truncated_log_loses_only_the_last_commits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    (0..8).for_each(|round| write_round(&store, round, Durability::Deferred));
    let length = fs::metadata(log(&path)).unwrap().len();
    let mut last = 0;
    for cut in (0..=length).step_by(97).chain([length]) {
        let crashed = folder.path().join(format!("cut at {cut}"));
        copy(&path, &crashed);
        fs::OpenOptions::new().write(true).open(log(&crashed)).unwrap().set_len(cut).unwrap();
        let rounds = whole_rounds(&open(&crashed));
        assert!(rounds >= last, "a longer log has at least as many commits");
        last = rounds;
        fs::remove_dir_all(&crashed).unwrap();
    }
    assert_eq!(last, 8);
}

#[test]
fn a_damaged_log_loses_only_the_last_commits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    (0..8).for_each(|round| write_round(&store, round, Durability::Deferred));
    let bytes = fs::read(log(&path)).unwrap();
    for at in (0..bytes.len()).step_by(151) {
        let crashed = folder.path().join(format!("damaged at {at}"));
        copy(&path, &crashed);
        let mut bytes = bytes.clone();
        bytes[at] ^= 0xff;
        fs::write(log(&crashed), bytes).unwrap();
        assert!(whole_rounds(&open(&crashed)) < 8);
        fs::remove_dir_all(&crashed).unwrap();
    }
}

/// RocksDB would read such a log for ever.
#[test]
fn a_record_of_a_recycled_log_is_damage_and_loses_only_the_last_commits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    // More than one block of 32 KiB.
    (0..200).for_each(|round| write_round(&store, round, Durability::Deferred));
    let bytes = fs::read(log(&path)).unwrap();
    assert!(bytes.len() > 40 << 10);
    // The positions of the records: seven bytes, of which two are the length and one is the type, and their content.
    let (mut records, mut at) = (Vec::new(), 0);
    while at + 7 <= bytes.len() {
        records.push(at);
        at += 7 + usize::from(u16::from_le_bytes([bytes[at + 4], bytes[at + 5]]));
        // What does not fit a header is the end of a block.
        let left = (32 << 10) - at % (32 << 10);
        at += if left < 7 { left } else { 0 };
    }
    assert!(records.len() > 200);
    for (place, kind) in [(1, 5), (30, 6), (150, 8), (records.len() - 1, 131), (50, 11), (0, 7)] {
        let crashed = folder.path().join(format!("record {place} of type {kind}"));
        copy(&path, &crashed);
        let mut bytes = bytes.clone();
        bytes[records[place] + 6] = kind;
        fs::write(log(&crashed), &bytes).unwrap();
        let error = open_error(&crashed, Access::ReadOnly);
        assert!(matches!(error, Error::Corrupt(_)) && error.to_string().contains("the log is damaged"), "{error}");
        assert_eq!(fs::read(log(&crashed)).unwrap(), bytes, "nothing is written");
        let rounds = whole_rounds(&open(&crashed));
        assert!(rounds <= place, "{rounds} rounds, record {place}");
        assert!(rounds + 5 > place, "only what is behind is lost: {rounds} rounds, record {place}");
    }
}

#[test]
fn a_dropped_keyspace_stays_dropped_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let (path, crashed) = (folder.path().join("db"), folder.path().join("crashed"));
    let store = open(&path);
    write_round(&store, 0, Durability::Sync);
    store.drop_keyspace(B, LONG).unwrap();
    put(&store, b"later", b"", Durability::Sync).unwrap();
    copy(&path, &crashed);
    let store = open(&crashed);
    assert_eq!((keys(&store).len(), keys_of(&store, B).unwrap().len()), (6, 0));
}

#[test]
fn after_a_crash_during_creation_the_next_open_creates_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let whole = made(folder.path());
    // In the order of their creation.
    let files = ["SLATE.7-0.part", "SLATE", "LOCK", "LOG", "IDENTITY", "MANIFEST-000001", "000001.dbtmp"];
    for count in 0..=files.len() {
        let path = folder.path().join(format!("{count} files"));
        fs::create_dir(&path).unwrap();
        for name in &files[..count] {
            let mark = if *name == "SLATE" { fs::read(whole.join("SLATE")).unwrap() } else { Vec::new() };
            fs::write(path.join(name), mark).unwrap();
        }
        for access in [Access::Open, Access::ReadOnly] {
            let error = open_error(&path, access);
            assert!(matches!(error, Error::Missing(_)), "{count} files: {error}");
        }
        put(&open(&path), b"a", b"", Durability::Sync).unwrap();
        assert_eq!(keys(&open(&path)), [b"a"]);
    }
}

#[test]
fn reading_a_damaged_file_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let small = Options::default().write_buffer_bytes(64 << 10);
    let store = RocksStore::open(&path, &small).unwrap();
    for round in 0..40_u32 {
        let mut transaction = begin(&store);
        (0..100_u32).for_each(|number| {
            let key = [round.to_be_bytes(), number.to_be_bytes()].concat();
            transaction.put(A, &key, &number.wrapping_mul(0x9e37_79b9).to_be_bytes().repeat(20)).unwrap();
        });
        transaction.commit(Durability::Deferred).unwrap();
    }
    drop(store);
    for name in names(&path).iter().filter(|name| name.ends_with(".sst")) {
        let mut bytes = fs::read(path.join(name)).unwrap();
        let middle = bytes.len() / 4;
        bytes[middle] ^= 0xff;
        fs::write(path.join(name), bytes).unwrap();
    }
    let read = RocksStore::open(&path, &small).and_then(|store| keys_of(&store, A));
    let error = read.unwrap_err();
    assert!(matches!(error, Error::Corrupt(_)), "{error}");
}
