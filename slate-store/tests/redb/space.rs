//! The file stays near the size of its data without an explicit compaction.

use std::{
    io,
    ops::ControlFlow,
    path::Path,
    sync::{Arc, Mutex},
};

use slate_store::{
    Checked, Durability, MAX_KEY, MAX_VALUE, Store, Transaction, TransactionExt,
    redb::{Options, RedbStore, Sharing, StorageBackend},
};

use crate::{
    device::Device,
    tools::{A, LONG, begin, keys, open, put},
};

/// Writes entries of about a kilobyte under these keys.
fn fill(store: &RedbStore, keys: impl Iterator<Item = u32>) {
    let keys: Vec<u32> = keys.collect();
    for keys in keys.chunks(2_000) {
        let mut transaction = begin(store);
        for key in keys {
            transaction.put(A, &key.wrapping_mul(0x9E37_79B9).to_be_bytes(), &[7; 1_000]).unwrap();
        }
        transaction.commit(Durability::Deferred).unwrap();
    }
}

fn length(path: &Path) -> u64 {
    path.metadata().unwrap().len()
}

/// Returns the length after an explicit compaction.
fn compacted(path: &Path) -> u64 {
    open(path).compact(LONG).unwrap();
    length(path)
}

#[test]
fn a_flush_after_loading_compacts_the_file_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    fill(&store, 0..40_000);
    let loaded = length(&path);
    store.flush().unwrap();
    let flushed = length(&path);
    assert!(flushed < loaded * 3 / 4, "{flushed} of {loaded} bytes");
    store.flush().unwrap();
    assert_eq!(length(&path), flushed);
    drop(store);
    assert!(flushed <= compacted(&path) * 11 / 10);
}

#[test]
fn a_snapshot_prevents_it_until_the_database_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    fill(&store, 0..20_000);
    let loaded = length(&path);
    let snapshot = store.snapshot().unwrap();
    store.flush().unwrap();
    assert!(length(&path) >= loaded * 9 / 10);
    drop(snapshot);
    drop(store);
    let closed = length(&path);
    assert!(closed <= compacted(&path) * 11 / 10);
}

#[test]
fn what_a_dropped_keyspace_took_is_returned_when_the_database_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    fill(&store, 0..40_000);
    store.flush().unwrap();
    store.drop_keyspace(A, LONG).unwrap();
    drop(store);
    assert!(length(&path) < 8 << 20, "{} bytes", length(&path));
}

#[test]
fn a_file_grows_by_regions_and_not_to_twice_its_length() {
    const MIB: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    // A page of a mebibyte for each.
    let value = vec![7; (1 << 20) - 1_000];
    let mut transaction = begin(&store);
    (0..264_u32).for_each(|key| transaction.put(A, &key.to_be_bytes(), &value).unwrap());
    transaction.commit(Durability::Deferred).unwrap();
    assert!(length(&path) <= 3 * 128 * MIB + MIB, "{} bytes", length(&path));

    // A leaf with two of the longest entries takes a whole region.
    let [small, longest] = [&[5, 9][..], &[7, 1, 3]];
    for last in [small, longest].concat() {
        let (key, value) =
            if small.contains(&last) { (vec![last], vec![]) } else { (vec![last; MAX_KEY], vec![7; MAX_VALUE]) };
        let mut transaction = begin(&store);
        transaction.put(A, &key, &value).unwrap();
        transaction.commit(Durability::Deferred).unwrap();
    }
    drop(store);
    let store = open(&path);
    store
        .check(&mut |checked| match checked {
            Checked::Bytes(_) => ControlFlow::Continue(()),
            damaged => panic!("{damaged:?}"),
        })
        .unwrap();
    assert_eq!(keys(&store).len(), 269);

    let mut transaction = begin(&store);
    longest.iter().for_each(|last| transaction.delete(A, &vec![*last; MAX_KEY]).unwrap());
    (20..264_u32).for_each(|key| transaction.delete(A, &key.to_be_bytes()).unwrap());
    transaction.commit(Durability::Sync).unwrap();
    drop(store);
    assert!(length(&path) <= 129 * MIB, "{} bytes", length(&path));
}

#[test]
fn deferred_commits_use_the_pages_that_earlier_ones_freed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    fill(&store, 0..10_000);
    store.flush().unwrap();
    let flushed = length(&path);
    // Each round rewrites every page, and none is synced.
    (0..10).for_each(|_| fill(&store, 0..10_000));
    assert!(length(&path) <= flushed * 6, "{} of {flushed} bytes", length(&path));
}

/// Writes small entries, of which each commit inserts every hundredth key, and returns the number of their bytes.
fn fill_between(store: &RedbStore) -> u64 {
    for commit in 0..100_u32 {
        let mut transaction = begin(store);
        for key in 0..2_000 {
            transaction.put(A, &(key * 100 + commit * 37 % 100).to_be_bytes(), &[7; 150]).unwrap();
        }
        transaction.commit(Durability::Deferred).unwrap();
    }
    200_000 * (4 + 150)
}

#[test]
fn sparse_pages_are_filled_by_a_flush_and_by_a_compaction() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    let bytes = fill_between(&store);
    let loaded = length(&path);
    store.flush().unwrap();
    let mut flushed = length(&path);
    // A flush does not compact a file that takes long to read, as on a machine that is busy with other work, and tries again only after a
    // pause.
    for attempt in 0..250_u32 {
        if flushed < bytes * 6 / 5 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
        let mut transaction = begin(&store);
        transaction.put(A, &0_u32.to_be_bytes(), &[u8::try_from(attempt).unwrap(); 150]).unwrap();
        transaction.commit(Durability::Deferred).unwrap();
        store.flush().unwrap();
        flushed = length(&path);
    }
    assert!(loaded > bytes * 2 && flushed < bytes * 6 / 5, "{loaded} and {flushed} bytes for {bytes}");
    assert_eq!(keys(&store), (0..200_000_u32).map(u32::to_be_bytes).collect::<Vec<_>>());

    // Fewer entries are between full pages than a flush would compact for.
    let mut transaction = begin(&store);
    (0..200_000_u32).step_by(2).for_each(|key| transaction.delete(A, &key.to_be_bytes()).unwrap());
    transaction.commit(Durability::Deferred).unwrap();
    store.compact(LONG).unwrap();
    let compacted = length(&path);
    assert!(compacted < bytes * 6 / 10, "{compacted} bytes for {bytes}, of which half were deleted");
    assert_eq!(keys(&store), (1..200_000_u32).step_by(2).map(u32::to_be_bytes).collect::<Vec<_>>());
}

/// Pages that stay in redb's write buffer are written when a read needs their place in the cache, and each read from the file
/// searches for them.
#[test]
fn reads_find_no_page_in_the_write_buffer_after_a_flush_and_after_synced_commits() {
    let device = Device::default();
    let store = RedbStore::open_over(device.handle(), &Options::default().cache_bytes(2 << 20)).unwrap();
    let writes_of_a_scan = || {
        let before = device.writes();
        assert_eq!(keys(&store).len(), 10_000);
        device.writes() - before
    };
    (0..3).for_each(|_| fill(&store, 0..10_000));
    assert_ne!(writes_of_a_scan(), 0, "deferred commits leave pages");
    store.flush().unwrap();
    assert_eq!(writes_of_a_scan(), 0, "after a flush");
    for key in 0..10_u32 {
        put(&store, &key.wrapping_mul(0x9E37_79B9).to_be_bytes(), &[8; 1_000], Durability::Sync).unwrap();
        assert_eq!(writes_of_a_scan(), 0, "after commit {key}");
    }
}

#[test]
fn large_entries_are_not_rewritten_in_vain() {
    let device = Device::default();
    let store = RedbStore::open_over(device.handle(), &Options::default()).unwrap();
    // Three entries take a page, and a quarter of it stays empty.
    fill(&store, 0..5_000);
    store.compact(LONG).unwrap();
    device.fail_write_after(100);
    store.compact(LONG).unwrap();
}

/// A storage in memory whose length and contents can be read while it is in use.
#[derive(Clone, Debug, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn length(&self) -> u64 {
        self.len().unwrap()
    }

    /// Returns what the storage has after the process was killed.
    fn copied(&self) -> Self {
        Self(Arc::new(Mutex::new(self.0.lock().unwrap().clone())))
    }
}

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        Ok(u64::try_from(self.0.lock().unwrap().len()).unwrap())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        out.copy_from_slice(&self.0.lock().unwrap()[offset..offset + out.len()]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.lock().unwrap().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        self.0.lock().unwrap()[offset..offset + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// The keys of the entries that [`update`] replaces.
const UPDATED: u32 = 1_000;

/// Replaces entries of half a kilobyte, one in each commit.
fn update(store: &RedbStore, commits: std::ops::Range<u32>) {
    for number in commits {
        let key = (number.wrapping_mul(0x9E37_79B9) % UPDATED).to_be_bytes();
        put(store, &key, &[u8::try_from(number % 251).unwrap(); 450], Durability::Sync).unwrap();
    }
}

/// The most bytes by which a `Sync` commit of [`update`] lengthens a file beside an old snapshot: redb frees no page that was replaced
/// since, which are a leaf and the root of the entries, the commit's version and the list of tables, and it writes a page about them. The file
/// is doubled when it is full.
const GROWTH: u64 = 2 * 5 * 4096;

#[test]
fn synced_commits_beside_a_snapshot_lengthen_the_file_by_the_pages_that_they_replace() {
    let storage = Memory::default();
    let store = RedbStore::open_over(storage.clone(), &Options::default()).unwrap();
    update(&store, 0..UPDATED);
    let before = storage.length();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(store.oldest_snapshot(), None, "it shows the last commit");
    for thousand in 1..=3 {
        update(&store, thousand * 1_000..(thousand + 1) * 1_000);
        let grown = storage.length() - before;
        assert!(
            grown < u64::from(thousand) * 1_000 * GROWTH + (16 << 20),
            "{grown} bytes after {thousand},000 commits"
        );
        let oldest = store.oldest_snapshot().unwrap();
        assert_eq!(oldest.version.0, u64::from(UPDATED));
        let held = oldest.held_bytes.unwrap();
        assert!(held > grown / 4 && held < 2 * grown, "{held} bytes held of {grown}");
    }
    drop(snapshot);
    assert_eq!(store.oldest_snapshot(), None);
    // What the snapshot held is used again.
    let after = storage.length();
    update(&store, 5_000..7_000);
    assert!(storage.length() <= after);
}

#[test]
fn commits_beside_a_reader_in_another_process_lengthen_the_file_as_much() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let shared = Options::default().sharing(Sharing::WithReaders);
    let store = RedbStore::open(&path, &shared).unwrap();
    update(&store, 0..UPDATED);
    let before = length(&path);
    // Locks within one process differ from those of two only in their owner, which is an open file.
    let reader = RedbStore::open(&path, &shared.clone().access(slate_store::Access::ReadOnly)).unwrap();
    let snapshot = reader.snapshot().unwrap();
    update(&store, 1_000..4_000);
    let grown = length(&path) - before;
    assert!(grown < 3_000 * GROWTH + (64 << 20), "{grown} bytes");
    assert_eq!(keys(&reader).len(), 1_000);
    drop(snapshot);
}

#[test]
fn a_database_opens_fast_after_a_crash_unless_a_snapshot_was_old() {
    let storage = Memory::default();
    let store = RedbStore::open_over(storage.clone(), &Options::default()).unwrap();
    fill(&store, 0..20_000);
    update(&store, 0..UPDATED);
    // Otherwise redb repairs the file, which reads all of it.
    let opens_fast = || {
        let mut builder = redb::Database::builder();
        builder.set_repair_callback(|session| session.abort());
        builder.create_with_backend(storage.copied()).is_ok()
    };
    assert!(opens_fast());
    let snapshot = store.snapshot().unwrap();
    update(&store, 1_000..1_030);
    assert!(opens_fast(), "the snapshot is not old");
    update(&store, 1_030..1_100);
    assert!(!opens_fast());
    drop(snapshot);
    update(&store, 1_100..1_101);
    assert!(opens_fast(), "the snapshot has ended");
}

/// Copies the file of an open database, as a kill of its process leaves it.
fn killed(path: &Path, store: RedbStore) -> std::path::PathBuf {
    let copy = path.with_extension("killed");
    std::fs::copy(path, &copy).unwrap();
    drop(store);
    copy
}

/// Writes, and closes the database, until the file has at most this length. A file that takes long to read is not compacted, as on a machine
/// that is busy with other work.
fn close_until(path: &Path, most: u64) -> bool {
    (0..50_u8).any(|number| {
        if number > 0 || length(path) > most {
            put(&open(path), b"one more", &[number], Durability::Sync).unwrap();
        }
        length(path) <= most
    })
}

#[test]
fn a_file_whose_process_was_killed_is_as_short_as_any_after_it_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    fill(&store, 0..20_000);
    drop(store);
    let closed = compacted(&path);
    let store = open(&path);
    update(&store, 0..300);
    assert!(length(&path) >= closed * 19 / 10, "the file is doubled");
    let killed = killed(&path, store);
    assert!(close_until(&path, closed * 11 / 10));
    assert!(close_until(&killed, closed * 11 / 10));
    assert!(keys(&open(&killed)).len() > 20_000);
}

#[test]
fn one_write_to_a_clean_file_leaves_it_as_short() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let store = open(&path);
    fill(&store, 0..20_000);
    drop(store);
    let closed = compacted(&path);
    let store = open(&path);
    put(&store, b"one more", b"", Durability::Sync).unwrap();
    assert!(length(&path) >= closed * 19 / 10, "the file is doubled");
    drop(store);
    assert!(close_until(&path, closed * 21 / 20));
    assert!(length(&path) <= compacted(&path) * 11 / 10);
}
