//! Compacts the file: as a whole, which nothing can be done beside and nothing can end early, or in steps (`steps.rs`).

use std::{
    ops::ControlFlow,
    sync::PoisonError,
    time::{Duration, Instant},
};

use ::redb::{CompactionError, Database};

use super::{
    error,
    open::Handle,
    options::Sharing,
    pages::{self, Walk},
    rewrite::ROOM,
    space::{LONGEST_WHOLE, Manner, Occasion},
    steps::{READING, Stepping},
    writer::{Permit, Writer},
};
use crate::{Checked, Compaction, Error, Result, crash_point, trace};

/// What a comparison of pages with their checksums has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inspected {
    Sound,
    /// There was no time for all pages.
    Late,
    Damaged,
}

impl Writer {
    /// Fills sparse pages, moves pages to the front of the file and truncates it.
    pub(super) fn compact(&self) -> Result<()> {
        self.check_writable()?;
        // redb copies pages as they are, and gives the copies new checksums.
        self.refuse_damage("nothing was compacted")?;
        let mut permit = self.permit()?;
        self.opened.guarded(|| self.compact_on(Occasion::Call, &mut permit))
    }

    /// Compacts the file and reports it.
    fn compact_on(&self, occasion: Occasion, permit: &mut Permit<'_>) -> Result<()> {
        let (begin, before) = (Instant::now(), self.space.length());
        let compacted = self.compact_in(occasion, permit);
        trace::compacted(occasion.name(), [before, self.space.length()], begin.elapsed(), &compacted);
        compacted
    }

    fn compact_in(&self, occasion: Occasion, permit: &mut Permit<'_>) -> Result<()> {
        // One may have been opened since the pages were read; the place of a compaction in steps is kept then.
        self.refuse_snapshots()?;
        let mut handle = self.opened.handle.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *handle {
            Handle::Writable(database) => {
                permit.stepping = None;
                self.fill_pages(database, occasion, permit)?;
                database.compact().map_err(error::compacting)?
            }
            Handle::ReadOnly(_) | Handle::Closed => return Err(self.read_only()),
        };
        // The compaction ends with a durable commit, which includes all before it.
        permit.version = self.version();
        self.space.set_compacted();
        Ok(())
    }

    /// Fills sparse pages, unless a snapshot or another process may read the pages that this would free.
    fn fill_pages(&self, database: &Database, occasion: Occasion, permit: &mut Permit<'_>) -> Result<()> {
        if self.has_snapshots() || self.opened.sharing == Sharing::WithReaders {
            return Ok(());
        }
        if permit.version < self.version() {
            let transaction = database.begin_write().map_err(error::storage)?;
            self.commit_to_device(permit, transaction, self.version())?;
        }
        let mut stepping = Stepping::begin(database, self.opened.storage())?;
        while !stepping.is_filled() && !self.lacks_room(&stepping, occasion) {
            self.step(database, &mut stepping, permit)?;
        }
        Ok(())
    }

    /// Returns whether pages are about to be filled, and the file has no room for the new ones: filling would lengthen it, which only a
    /// call asks for.
    fn lacks_room(&self, stepping: &Stepping, occasion: Occasion) -> bool {
        let has_room = |length| length >= stepping.used().saturating_add(ROOM);
        occasion != Occasion::Call && stepping.is_about_to_fill() && !self.space.length().is_some_and(has_room)
    }

    /// Does a step of a compaction, as a durable commit.
    fn step(&self, database: &Database, stepping: &mut Stepping, permit: &mut Permit<'_>) -> Result<()> {
        stepping.step(database, self.opened.storage(), Instant::now() + READING, |transaction| {
            self.commit_to_device(permit, transaction, self.version())?;
            crash_point("between-rewritten-chunks");
            Ok(())
        })
    }

    /// Does the next step of a compaction, or all of it if the file is short; the first one if nothing is `done` yet. Returns what is done
    /// now; `None`: all.
    pub(super) fn compact_step(&self, done: Option<Compaction>) -> Result<Option<Compaction>> {
        self.check_writable()?;
        // Before anything is read.
        self.opened.guarded(|| self.refuse_snapshots())?;
        let is_short = self.opened.storage().len().is_ok_and(|length| length <= LONGEST_WHOLE);
        let is_whole = done.is_none() && is_short && !crash_point::is_chosen("steps-of-short-files");
        // Pages that another process may read are not freed, so the file would grow with each step.
        if is_whole || self.opened.sharing == Sharing::WithReaders {
            return self.compact().map(|()| None);
        }
        let mut permit = self.permit()?;
        self.opened.guarded(|| self.next_step(done, &mut permit))
    }

    /// Does the next step of the compaction that was begun, or begins one. After a failure the next call begins one.
    fn next_step(&self, done: Option<Compaction>, permit: &mut Permit<'_>) -> Result<Option<Compaction>> {
        self.refuse_snapshots()?;
        let begun = permit.stepping.take().filter(|stepping| done.is_some() || stepping.can_go_on());
        let before = self.space.length();
        let mut stepping = self.begun_or_new(begun, permit)?;
        if !stepping.is_over() {
            let handle = self.opened.handle();
            let Handle::Writable(database) = &*handle else { return Err(self.read_only()) };
            self.step(database, &mut stepping, permit)?;
        }
        if stepping.is_over() && self.end_steps(&stepping, permit)? {
            trace::compacted(Occasion::Call.name(), [before, self.space.length()], stepping.begun.elapsed(), &Ok(()));
            return Ok(None);
        }
        let done = stepping.done();
        stepping.called = Some(Instant::now());
        permit.stepping = Some(stepping);
        Ok(Some(done))
    }

    /// Returns a compaction in steps, which reads pages as they are on the device.
    fn begun_or_new(&self, begun: Option<Stepping>, permit: &mut Permit<'_>) -> Result<Stepping> {
        if permit.version < self.version() {
            self.sync(permit)?;
        }
        let handle = self.opened.handle();
        let Handle::Writable(database) = &*handle else { return Err(self.read_only()) };
        begun.map_or_else(|| Stepping::begin(database, self.opened.storage()), Ok)
    }

    /// Frees what the last steps have replaced, so that redb cuts the end of the file. Returns whether nothing has prevented that.
    fn end_steps(&self, stepping: &Stepping, permit: &mut Permit<'_>) -> Result<bool> {
        self.sync(permit)?;
        self.sync(permit)?;
        if self.has_snapshots() {
            return Ok(false);
        }
        // Otherwise pages that were written since may be sparse, or lie at the end.
        if !stepping.is_outdated() {
            self.space.set_stepped(stepping.used_now());
        }
        Ok(true)
    }

    /// Fails if a snapshot is open.
    fn refuse_snapshots(&self) -> Result<()> {
        match self.has_snapshots() {
            true => Err(error::compacting(CompactionError::TransactionInProgress)),
            false => Ok(()),
        }
    }

    /// Compacts a file in steps, for a limited time, because it is too large to be compacted as a whole. A later call goes on.
    fn compact_in_steps(&self, occasion: Occasion, permit: &mut Permit<'_>) -> Result<()> {
        // Pages that somebody may read are not freed, so the file would grow.
        if self.opened.sharing == Sharing::WithReaders || self.has_snapshots() {
            return Ok(());
        }
        let (begin, before) = (Instant::now(), self.space.length());
        let compacted = self.steps_within(self.space.time_for_steps(occasion), occasion, permit);
        trace::compacted(occasion.name(), [before, self.space.length()], begin.elapsed(), &compacted);
        if matches!(compacted, Err(Error::Corrupt(_))) {
            self.space.set_damaged();
        }
        compacted
    }

    fn steps_within(&self, time: Duration, occasion: Occasion, permit: &mut Permit<'_>) -> Result<()> {
        let begin = Instant::now();
        // A service that drops collections and indexes would never get to the end, if each one made its flushes begin anew.
        let goes_on = |stepping: &Stepping| occasion == Occasion::Flush || stepping.can_go_on();
        let begun = permit.stepping.take().filter(goes_on);
        let mut stepping = self.begun_or_new(begun, permit)?;
        // Beside a snapshot each step would lengthen the file.
        while !stepping.is_over() && !self.has_snapshots() {
            let handle = self.opened.handle();
            let Handle::Writable(database) = &*handle else { return Err(self.read_only()) };
            // The file can only be cut behind pages that were moved.
            let is_time_to_move = occasion == Occasion::Close && begin.elapsed() >= time * 2 / 3;
            if self.lacks_room(&stepping, occasion) || is_time_to_move && stepping.is_filling() {
                stepping.end_pass(database)?;
            }
            self.step(database, &mut stepping, permit)?;
            if begin.elapsed() >= time {
                break;
            }
        }
        if !stepping.is_over() || !self.end_steps(&stepping, permit)? {
            permit.stepping = Some(stepping);
        }
        Ok(())
    }

    /// Compacts the file if it is worthwhile, for a limited time: as a whole if that is quick.
    /// Does not return a failure: if the device is at fault, the next commit fails.
    pub(super) fn save_space(&self, occasion: Occasion, permit: &mut Permit<'_>) {
        if occasion == Occasion::Flush && permit.stepping.as_ref().is_some_and(Stepping::belongs_to_a_call) {
            return;
        }
        let begin = Instant::now();
        let Ok(has_read) = self.survey(occasion, permit) else { return };
        let steps_are_chosen = occasion == Occasion::Close && crash_point::is_chosen("steps-of-short-files");
        let manner = if steps_are_chosen { Some(Manner::Steps) } else { self.space.should_compact(occasion) };
        match manner {
            None => {}
            // The compaction fails at once, which is reported.
            Some(Manner::Whole) if self.has_snapshots() => drop(self.compact_on(occasion, permit)),
            Some(Manner::Whole) => match self.inspect(begin.checked_add(occasion.patience()), permit) {
                Ok(Inspected::Sound) => drop(self.compact_on(occasion, permit)),
                Ok(Inspected::Late) if occasion == Occasion::Close => drop(self.compact_in_steps(occasion, permit)),
                Ok(Inspected::Late | Inspected::Damaged) | Err(_) => {}
            },
            Some(Manner::Steps) => drop(self.compact_in_steps(occasion, permit)),
        }
        if has_read || manner.is_some() {
            self.space.set_tried(begin);
        }
    }

    /// Compares all pages of tables with their checksums, to which a compaction gives new ones, until `until`.
    fn inspect(&self, until: Option<Instant>, permit: &mut Permit<'_>) -> Result<Inspected> {
        if permit.version < self.version() {
            self.sync(permit)?;
        }
        let storage = self.opened.storage();
        let Some(header) = pages::header(storage)? else { return Ok(Inspected::Damaged) };
        let mut found = Inspected::Sound;
        let mut visitor = |checked| {
            found = match checked {
                Checked::Bytes(_) if until.is_none_or(|until| Instant::now() < until) => {
                    return ControlFlow::Continue(());
                }
                Checked::Bytes(_) => Inspected::Late,
                Checked::Damaged(_) => Inspected::Damaged,
            };
            ControlFlow::Break(())
        };
        let _ = Walk::new(header, storage, &mut visitor).map_err(error::reading)?.tables();
        Ok(found)
    }

    /// Finds out how long the file should be, if it was written to. It may have been too long when it was opened, because its last writer was
    /// killed or had no time to compact it, or keyspaces of unknown size were dropped. Returns whether it has read the file for that.
    fn survey(&self, occasion: Occasion, permit: &mut Permit<'_>) -> Result<bool> {
        if self.version() == self.opened_at || !self.space.is_guessed(occasion) {
            return Ok(false);
        }
        if permit.version < self.version() {
            self.sync(permit)?;
        }
        let until = (occasion == Occasion::Flush).then(|| Instant::now().checked_add(occasion.patience())).flatten();
        if let Some(used) = pages::used_bytes(self.opened.storage(), until)? {
            self.space.set_used(used);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        fs::{self, File},
        io::{Seek, SeekFrom, Write},
        path::{Path, PathBuf},
        sync::OnceLock,
    };

    use tempfile::TempDir;

    use super::*;
    use crate::{
        Access, Bounds, Changes, Durability, Keyspace, View,
        optimistic::WriteSet,
        redb::apply::Written,
        redb::{Options, Recovery, open, rewrite::PAGE, snapshot::RedbSnapshot},
    };

    const KEYSPACE: Keyspace = Keyspace(1);

    const ENTRIES: u32 = 40_000;

    fn writer(path: &Path) -> Writer {
        let options = Options::default().access(Access::CreateOrOpen);
        Writer::new(open::at(path, &options).unwrap(), Recovery::default()).unwrap()
    }

    fn value(key: u32) -> [u8; 400] {
        [u8::try_from(key % 251).unwrap(); 400]
    }

    /// Makes a commit.
    fn write(writer: &Writer, keys: impl Iterator<Item = u32>, value: impl Fn(u32) -> Option<[u8; 400]>) {
        let mut writes = WriteSet::default();
        for key in keys {
            writes.write(KEYSPACE, &[(&key.to_be_bytes(), value(key).as_ref().map(|value| &value[..]))]);
        }
        writer.apply(&mut Changes::of(&writes), Durability::Deferred).unwrap();
    }

    /// Returns a copy of a file with entries of which each transaction has inserted every twentieth, so that pages were split in their middles.
    fn sparse_file() -> (TempDir, PathBuf) {
        static FILE: OnceLock<Vec<u8>> = OnceLock::new();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let file = FILE.get_or_init(|| {
            let writer = writer(&path);
            for round in 0..20 {
                write(&writer, (0..ENTRIES).step_by(20).map(|key| key + round * 7 % 20), |key| Some(value(key)));
            }
            // Closing does not compact it.
            writer.space.set_compacted();
            drop(writer);
            fs::read(&path).unwrap()
        });
        fs::write(&path, file).unwrap();
        (folder, path)
    }

    fn entries(writer: &Writer) -> BTreeMap<u32, Vec<u8>> {
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

    fn used(writer: &Writer) -> u64 {
        writer.synced_used_bytes().unwrap().unwrap()
    }

    fn step(writer: &Writer, done: Option<Compaction>) -> Result<Option<Compaction>> {
        let mut permit = writer.permit().unwrap();
        writer.opened.guarded(|| writer.next_step(done, &mut permit))
    }

    /// Does steps until the compaction has filled pages.
    fn begin(writer: &Writer) -> Compaction {
        let mut done = step(writer, None).unwrap().unwrap();
        while done.examined == 0 {
            done = step(writer, Some(done)).unwrap().unwrap();
        }
        done
    }

    /// Does all steps from the one behind `done`, and calls `beside` between them. Returns what the first of them has done.
    fn go_on(writer: &Writer, mut done: Option<Compaction>, mut beside: impl FnMut()) -> Compaction {
        let mut first = None;
        while let Some(next) = step(writer, done).unwrap() {
            assert!(next.examined >= done.map_or(0, |done| done.examined), "{next:?} after {done:?}");
            first.get_or_insert(next);
            done = Some(next);
            beside();
        }
        first.unwrap_or_default()
    }

    /// Closes the file. Fails unless it has about the length of its data, and no page is damaged.
    fn close_compacted(writer: Writer, path: &Path) {
        let used = used(&writer);
        writer.refuse_damage("damaged").unwrap();
        // Closing does not compact it.
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
        // Each call does one step, and goes on where the one before has ended.
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
            // As after the pause.
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
        // Not all new ones were added to the file.
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
        // Branches are counted in the total only.
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
    fn a_step_beside_a_snapshot_reads_nothing_and_a_late_one_keeps_the_compaction_from_ending() {
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
        assert!(is_refused(step(&writer, Some(done))));
        drop(snapshot);
        while !writer.permit().unwrap().stepping.as_ref().unwrap().is_filled() {
            let next = step(&writer, Some(done)).unwrap().unwrap();
            assert!(next.examined >= done.examined, "{next:?} after {done:?}");
            done = next;
        }
        // As if it were opened during the last step.
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
        // As if a keyspace was dropped.
        let dropped = Written { has_dropped: true, ..Written::default() };
        writer.permit().unwrap().stepping.as_mut().unwrap().committed(dropped);
        assert!(flush() > before, "it begins not anew");

        let done = begin(&writer);
        let mut permit = writer.permit().unwrap();
        writer.save_space(Occasion::Flush, &mut permit);
        assert_eq!(permit.stepping.as_ref().unwrap().done(), done);
    }

    #[test]
    fn a_damaged_page_ends_the_steps_and_keeps_its_checksum() {
        let (_folder, path) = sparse_file();
        let bytes = fs::read(&path).unwrap();
        let writer = self::writer(&path);
        // A value that occurs in few leaves, in the middle of the table.
        let at = bytes.windows(4).rposition(|four| four == (ENTRIES / 2 + 1).to_be_bytes()).unwrap();
        let mut file = File::options().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(u64::try_from(at).unwrap())).unwrap();
        file.write_all(&[bytes[at] ^ 1]).unwrap();
        let damage = |writer: &Writer| writer.refuse_damage("damaged").unwrap_err();
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
        // A flush would meet it each time.
        assert!(occasions.map(|occasion| writer.space.should_compact(occasion).is_some()) == [false, true]);
    }
}
