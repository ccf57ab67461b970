use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use tempfile::TempDir;

use super::*;
use crate::{
    Access, Bounds, Changes, Durability, Keyspace, View,
    optimistic::WriteSet,
    redb::apply::Written,
    redb::{Options, open, rewrite::PAGE, snapshot::RedbSnapshot, table},
};

const KEYSPACE: Keyspace = Keyspace(1);

const ENTRIES: u32 = 40_000;

fn writer(path: &Path) -> RedbWriter {
    let options = Options::default().access(Access::CreateOrOpen);
    RedbWriter::new(open::at(path, &options).unwrap(), &options).unwrap()
}

fn value(key: u32) -> [u8; 400] {
    [u8::try_from(key % 251).unwrap(); 400]
}

/// Commits the value of each key; `None` deletes it.
fn write(writer: &RedbWriter, keys: impl Iterator<Item = u32>, value: impl Fn(u32) -> Option<[u8; 400]>) {
    let mut writes = WriteSet::default();
    for key in keys {
        writes.write(KEYSPACE, &[(&key.to_be_bytes(), value(key).as_ref().map(|value| &value[..]))]);
    }
    writer.apply(&mut Changes::of(&writes), Durability::Deferred).unwrap();
}

/// Returns a copy of a file with sparse pages: each of its transactions inserted every twentieth key, so pages were split in the middle.
fn sparse_file() -> (TempDir, PathBuf) {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let file = FILE.get_or_init(|| {
        let writer = writer(&path);
        for round in 0..20 {
            write(&writer, (0..ENTRIES).step_by(20).map(|key| key + round * 7 % 20), |key| Some(value(key)));
        }
        // Prevents the compaction on closing.
        writer.space.set_compacted();
        drop(writer);
        fs::read(&path).unwrap()
    });
    fs::write(&path, file).unwrap();
    (folder, path)
}

fn entries(writer: &RedbWriter) -> BTreeMap<u32, Vec<u8>> {
    let mut entries = BTreeMap::new();
    let scanned = RedbSnapshot::open(&writer.opened).unwrap().scan(KEYSPACE, Bounds::ALL, |key, value| {
        entries.insert(u32::from_be_bytes(key.try_into().unwrap()), value.to_vec());
        ControlFlow::<()>::Continue(())
    });
    scanned.unwrap();
    entries
}

fn all() -> BTreeMap<u32, Vec<u8>> {
    (0..ENTRIES).map(|key| (key, value(key).to_vec())).collect()
}

fn used(writer: &RedbWriter) -> u64 {
    writer.synced_used_bytes().unwrap().unwrap()
}

fn step(writer: &RedbWriter, done: Option<Compaction>) -> Result<Option<Compaction>> {
    let mut permit = writer.permit().unwrap();
    writer.opened.guarded(|| writer.next_step(done, &mut permit))
}

/// Executes steps until the compaction has filled pages.
fn begin(writer: &RedbWriter) -> Compaction {
    let mut done = step(writer, None).unwrap().unwrap();
    while done.examined == 0 {
        done = step(writer, Some(done)).unwrap().unwrap();
    }
    done
}

/// Executes all steps after `done`, and calls `beside` between them. Returns the progress after the first of them.
fn go_on(writer: &RedbWriter, mut done: Option<Compaction>, mut beside: impl FnMut()) -> Compaction {
    let mut first = None;
    while let Some(next) = step(writer, done).unwrap() {
        assert!(next.examined >= done.map_or(0, |done| done.examined), "{next:?} after {done:?}");
        first.get_or_insert(next);
        done = Some(next);
        beside();
    }
    first.unwrap_or_default()
}

/// Closes the file. Fails unless its length is about that of its data, and all pages are sound.
fn close_compacted(writer: RedbWriter, path: &Path) {
    let used = used(&writer);
    writer.refuse_damage("damaged").unwrap();
    // Prevents the compaction on closing.
    writer.space.set_compacted();
    drop(writer);
    let length = path.metadata().unwrap().len();
    assert!(length < used + used / 64 + 2 * ROOM, "{length} bytes for {used}");
}

#[test]
fn steps_end_when_their_time_is_over_and_change_no_entry() {
    let (_folder, path) = sparse_file();
    let writer = writer(&path);
    let sparse = used(&writer);
    assert_eq!(pages::used_bytes(writer.opened.storage(), Some(Instant::now())).unwrap(), None);
    let inspect = |until| writer.inspect(until, &mut writer.permit().unwrap()).unwrap();
    assert_eq!([Some(Instant::now()), None].map(inspect), [Inspected::Late, Inspected::Sound]);
    let compact = |time| writer.steps_within(time, Occasion::Flush, &mut writer.permit().unwrap()).unwrap();
    // Each call executes one step, and continues where the previous one has ended.
    let mut calls = 0;
    while calls == 0 || writer.permit().unwrap().stepping.is_some() {
        compact(Duration::ZERO);
        calls += 1;
    }
    assert!(calls > 5, "{calls} calls");
    assert!(used(&writer) < sparse * 4 / 5, "{} of {sparse} bytes", used(&writer));
    close_compacted(writer, &path);
    assert_eq!(entries(&self::writer(&path)), all());
}

#[test]
#[ignore = "writes a gigabyte"]
fn flushes_compact_a_long_file_in_steps() {
    const LONG: u32 = 1_000_000;
    const ROUNDS: u32 = 100;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let writer = writer(&path);
    for round in 0..ROUNDS {
        let stride = usize::try_from(ROUNDS).unwrap();
        write(&writer, (0..LONG).step_by(stride).map(|key| key + round * 7 % ROUNDS), |key| Some(value(key)));
    }
    let (loaded, begin) = (path.metadata().unwrap().len(), Instant::now());
    writer.flush().unwrap();
    let took = begin.elapsed();
    assert!(writer.permit().unwrap().stepping.is_some(), "it was begun");
    let sparse = used(&writer);
    let mut flushes = 1;
    while writer.permit().unwrap().stepping.is_some() {
        // As `flush` does after its pause.
        writer.compact_in_steps(Occasion::Flush, &mut writer.permit().unwrap()).unwrap();
        flushes += 1;
    }
    let (length, dense) = (path.metadata().unwrap().len(), used(&writer));
    println!(
        "{loaded} bytes, {sparse} in use; {length} bytes, {dense} in use after {flushes} flushes, the first took {took:?}; {:?}",
        begin.elapsed()
    );
    assert!(length < loaded * 3 / 4 && length < dense * 5 / 4);
    assert!(writer.space.should_compact(Occasion::Close).is_none());
    let mut next = 0_u32;
    let scanned = RedbSnapshot::open(&writer.opened).unwrap().scan(KEYSPACE, Bounds::ALL, |key, found| {
        let is_right = key == next.to_be_bytes() && found == value(next);
        next += 1;
        if is_right { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert_eq!((scanned.unwrap(), next), (None, LONG));
}

#[test]
fn filling_frees_the_pages_that_it_replaces() {
    let (_folder, path) = sparse_file();
    let writer = writer(&path);
    let sparse = used(&writer);
    let handle = writer.opened.handle();
    let Handle::Writable(database) = &*handle else { panic!("opened for writing") };
    writer.fill_pages(database, Occasion::Call, &mut writer.permit().unwrap()).unwrap();
    assert!(used(&writer) < sparse * 4 / 5, "{} of {sparse} bytes", used(&writer));
    // Filling has reused freed pages: not all of the new pages were added to the file.
    let stats = writer.begin(&writer.permit().unwrap()).unwrap().stats().unwrap();
    let allocated = stats.allocated_pages() * u64::try_from(stats.page_size()).unwrap();
    assert!(allocated < used(&writer) + ROOM, "{allocated} bytes are allocated for {}", used(&writer));
    assert_eq!(entries(&writer), all());
}

#[test]
fn each_leaf_is_examined_once_in_each_pass() {
    let (_folder, path) = sparse_file();
    let writer = writer(&path);
    let sparse = used(&writer);
    let done = begin(&writer);
    let own_table = PAGE;
    assert_eq!(done.total, 3 * (sparse - own_table), "the pages are counted as the survey counts them");
    let last = std::cell::Cell::new(done);
    go_on(&writer, Some(done), || {
        last.set(writer.permit().unwrap().stepping.as_ref().unwrap().done());
    });
    let (last, dense) = (last.get(), used(&writer));
    // Branches are only counted in the total.
    let expected = (sparse + dense) * 95 / 100..=sparse + 2 * dense;
    assert!(expected.contains(&last.examined), "{last:?} of {sparse} and {dense}");
}

#[test]
fn a_compaction_goes_on_where_it_was_left() {
    let (_folder, path) = sparse_file();
    let writer = writer(&path);
    let done = begin(&writer);
    write(&writer, 0..100, |key| Some(value(key)));
    let first = go_on(&writer, None, || ());
    assert!(first.examined > done.examined, "{first:?} after {done:?}");
    assert_eq!(entries(&writer), all());
    close_compacted(writer, &path);
}

#[test]
fn a_compaction_begins_anew_after_many_changes_and_after_another_one() {
    let (_folder, path) = sparse_file();
    let writer = writer(&path);
    let done = begin(&writer);
    let is_left = |key: u32| key.is_multiple_of(10);
    write(&writer, (0..ENTRIES).filter(|key| !is_left(*key)), |_| None);
    let first = go_on(&writer, None, || ());
    assert!(first.examined < done.examined, "{first:?} after {done:?}");
    assert!(used(&writer) < 4 << 20, "{} bytes", used(&writer));
    let mut left = all();
    left.retain(|key, _| is_left(*key));
    assert_eq!(entries(&writer), left);

    begin(&writer);
    writer.compact().unwrap();
    assert!(writer.permit().unwrap().stepping.is_none());
    begin(&writer);
    let mut writes = WriteSet::default();
    writes.delete_range(KEYSPACE, Bounds::ALL);
    writer.apply(&mut Changes::of(&writes), Durability::Deferred).unwrap();
    assert!(writer.permit().unwrap().stepping.as_ref().unwrap().is_outdated(), "the keyspace was dropped");
    go_on(&writer, None, || ());
    assert_eq!(entries(&writer), BTreeMap::new());
    close_compacted(writer, &path);
}

#[test]
fn a_compaction_beside_many_writes_ends_and_does_not_count_as_complete() {
    let (_folder, path) = sparse_file();
    let writer = writer(&path);
    let mut left = all();
    let mut steps = 0_u32;
    writer.space.set_used(1);
    go_on(&writer, None, || {
        steps += 1;
        let keys: Vec<u32> = (0..500).map(|n| (steps * 500 + n).wrapping_mul(0x9E37_79B9) % ENTRIES).collect();
        let made = |key: u32| (!key.is_multiple_of(3)).then(|| value(key + steps));
        for key in &keys {
            match made(*key) {
                Some(value) => drop(left.insert(*key, value.to_vec())),
                None => drop(left.remove(key)),
            }
        }
        write(&writer, keys.iter().copied(), made);
    });
    assert!(steps > 5, "{steps} steps");
    assert_eq!(entries(&writer), left);
    writer.refuse_damage("damaged").unwrap();
    assert!(writer.space.should_compact(Occasion::Close).is_some());
    drop(writer);
    assert_eq!(entries(&self::writer(&path)), left);
}

#[test]
fn a_step_waits_for_snapshots_from_before_the_last_one_and_reads_nothing_meanwhile() {
    let (_folder, path) = sparse_file();
    let writer = writer(&path);
    let sparse = used(&writer);
    let is_refused = |result: Result<_>| matches!(result, Err(Error::Conflict(_)));
    let snapshot = writer.snapshot().unwrap();
    let read = || writer.opened.transferred.read();
    let before = read();
    assert!(is_refused(writer.compact_step(None)));
    assert!(is_refused(step(&writer, None)));
    assert_eq!(read(), before);
    drop(snapshot);

    let mut done = begin(&writer);
    let snapshot = writer.snapshot().unwrap();
    done = step(&writer, Some(done)).unwrap().unwrap();
    let before = read();
    assert!(is_refused(step(&writer, Some(done))));
    let later = writer.snapshot().unwrap();
    assert!(is_refused(step(&writer, Some(done))));
    assert_eq!(read(), before);
    drop(snapshot);
    done = step(&writer, Some(done)).unwrap().unwrap();
    drop(later);
    while !writer.permit().unwrap().stepping.as_ref().unwrap().is_filled() {
        let next = step(&writer, Some(done)).unwrap().unwrap();
        assert!(next.examined >= done.examined, "{next:?} after {done:?}");
        done = next;
    }
    // Simulates a snapshot that is opened during the last step of a flush.
    let mut permit = writer.permit().unwrap();
    let stepping = permit.stepping.take().unwrap();
    let snapshot = writer.snapshot().unwrap();
    assert!(!writer.end_steps(&stepping, &mut permit).unwrap());
    drop(snapshot);
    permit.stepping = Some(stepping);
    drop(permit);
    go_on(&writer, Some(done), || ());
    assert!(used(&writer) < sparse * 4 / 5, "{} of {sparse} bytes", used(&writer));
    writer.refuse_damage("damaged").unwrap();
    assert_eq!(entries(&writer), all());
}

#[test]
fn a_flush_does_no_steps_beside_a_snapshot_or_a_call_and_goes_on_after_a_drop() {
    let (_folder, path) = sparse_file();
    let writer = writer(&path);
    let flush = || {
        let mut permit = writer.permit().unwrap();
        writer.steps_within(Duration::ZERO, Occasion::Flush, &mut permit).unwrap();
        permit.stepping.as_ref().unwrap().done().examined
    };
    while flush() == 0 {}
    let before = flush();
    let snapshot = writer.snapshot().unwrap();
    assert_eq!(flush(), before);
    drop(snapshot);
    // Simulates the drop of a keyspace.
    let dropped = Written { has_dropped: true, ..Written::default() };
    writer.permit().unwrap().stepping.as_mut().unwrap().committed(dropped);
    assert!(flush() > before, "it begins not anew");

    let done = begin(&writer);
    let mut permit = writer.permit().unwrap();
    writer.save_space(Occasion::Flush, &mut permit);
    assert_eq!(permit.stepping.as_ref().unwrap().done(), done);
}

/// Flips a bit of a file.
fn damage(path: &Path, at: u64) {
    let mut file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.seek(SeekFrom::Start(at)).unwrap();
    file.read_exact(&mut byte).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(&[byte[0] ^ 1]).unwrap();
}

/// redb may merge branches, and would give a damaged one a new checksum.
#[test]
fn a_branch_beside_a_group_that_is_damaged_between_two_steps_ends_the_next_step() {
    let name = table::name(KEYSPACE);
    let mut number = 0;
    loop {
        let (_folder, path) = sparse_file();
        let writer = writer(&path);
        let done = begin(&writer);
        let storage = writer.opened.storage();
        let after = writer.permit().unwrap().stepping.as_ref().unwrap().after().unwrap().to_vec();
        let header = pages::header(storage).unwrap().unwrap();
        // The last byte of each branch, which is in its last key.
        let all = pages::branches_of(header, storage, &name).unwrap();
        let is_beside = |at: &u64| {
            damage(&path, *at);
            let found = pages::check_around(header, storage, &name, &after).is_err();
            damage(&path, *at);
            found
        };
        let beside: Vec<u64> = all.into_iter().map(|(start, end)| start + end - 1).filter(is_beside).collect();
        assert!(beside.len() > 2, "the root, a branch and the ones beside it: {beside:?}");
        let Some(at) = beside.get(number) else { break };
        damage(&path, *at);
        let error = step(&writer, Some(done)).unwrap_err();
        assert!(matches!(error, Error::Corrupt(_)), "{error}");
        assert!(writer.refuse_damage("damaged").is_err(), "the damage is not hidden");
        number += 1;
    }
}

#[test]
fn a_damaged_page_ends_the_steps_and_keeps_its_checksum() {
    let (_folder, path) = sparse_file();
    let bytes = fs::read(&path).unwrap();
    let writer = self::writer(&path);
    // Bytes of a value in few leaves, in the middle of the table.
    let at = bytes.windows(4).rposition(|four| four == (ENTRIES / 2 + 1).to_be_bytes()).unwrap();
    let mut file = File::options().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(u64::try_from(at).unwrap())).unwrap();
    file.write_all(&[bytes[at] ^ 1]).unwrap();
    let damage = |writer: &RedbWriter| writer.refuse_damage("damaged").unwrap_err();
    assert!(matches!(damage(&writer), Error::Corrupt(_)));
    for _ in 0..2 {
        let mut done = None;
        let error = loop {
            match step(&writer, done) {
                Ok(Some(next)) => done = Some(next),
                Ok(None) => panic!("the compaction has ended as if nothing was damaged"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Corrupt(_)), "{error}");
        assert!(error.to_string().contains("checksum") || error.to_string().contains("branch"), "{error}");
        assert!(matches!(damage(&writer), Error::Corrupt(_)), "the damage is not hidden");
    }
    let permit = &mut writer.permit().unwrap();
    let occasions = [Occasion::Flush, Occasion::Close];
    writer.space.set_used(1);
    assert!(occasions.map(|occasion| writer.space.should_compact(occasion).is_some()) == [true; 2]);
    let closing = writer.compact_in_steps(Occasion::Close, permit);
    assert!(matches!(closing, Err(Error::Corrupt(_))), "{closing:?}");
    // Every flush would find the damage again.
    assert!(occasions.map(|occasion| writer.space.should_compact(occasion).is_some()) == [false, true]);
}
