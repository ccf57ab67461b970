use std::{
    ops::ControlFlow,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use ::redb::{Database, ReadTransaction, WriteTransaction};

use super::{
    apply::{Applying, Written},
    error,
    latest::Latest,
    moving::move_to_front,
    open::{Handle, Opened},
    options::{Recovery, Sharing},
    pages::{self, Header, Walk},
    rewrite::{self, ROOM},
    snapshot::RedbSnapshot,
    space::{Manner, Occasion, Space},
    version,
};
use crate::{
    Changes, Checked, Context, Damage, Durability, Error, OldestSnapshot, Result, Version, crash_point, trace,
};

/// Makes commits, flushes and compactions.
pub(super) struct Writer {
    pub(super) opened: Arc<Opened>,
    pub(super) latest: Latest,
    space: Space,
    recovery: Recovery,
    /// The version of the last commit when the database was opened.
    opened_at: Version,
    /// The version of the last commit. Changed only by the holder of the permit.
    version: AtomicU64,
    durable: Mutex<Durable>,
}

/// The last commit that is on the device. Locked by whatever begins a write transaction of redb, which admits one at a time.
struct Durable(Version);

/// What a comparison of pages with their checksums has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inspected {
    Sound,
    /// There was no time for all pages.
    Late,
    Damaged,
}

/// The permit to write.
type Permit<'w> = MutexGuard<'w, Durable>;

impl Writer {
    pub(super) fn new(opened: Opened, recovery: Recovery) -> Result<Self> {
        let version = opened.guarded(|| version::read(&opened.handle().begin_read()?))?;
        Ok(Self {
            space: Space::of(opened.path.clone()),
            opened: Arc::new(opened),
            latest: Latest::default(),
            recovery,
            opened_at: version,
            version: AtomicU64::new(version.0),
            durable: Mutex::new(Durable(version)),
        })
    }

    /// Returns whether another process may write to the database.
    pub(super) fn follows(&self) -> bool {
        self.opened.sharing == Sharing::WithReaders && matches!(&*self.opened.handle(), Handle::ReadOnly(_))
    }

    /// Returns a snapshot of the last commit.
    pub(super) fn snapshot(&self) -> Result<RedbSnapshot> {
        if self.follows() { RedbSnapshot::open(&self.opened) } else { self.latest.snapshot(&self.opened) }
    }

    pub(super) fn version(&self) -> Version {
        Version(self.version.load(Ordering::Acquire))
    }

    /// Waits for the permit to write.
    fn permit(&self) -> Result<Permit<'_>> {
        self.check_writable()?;
        // No code under this lock can panic between two dependent updates.
        Ok(self.durable.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Begins a transaction of redb. The permit guarantees that redb has no other writer and does not block.
    fn begin(&self, _: &Permit<'_>) -> Result<WriteTransaction> {
        match &*self.opened.handle() {
            Handle::Writable(database) => {
                // Drops the cached snapshot first, so that redb can reuse the pages that only it pins.
                self.latest.forget();
                database.begin_write().map_err(error::storage)
            }
            Handle::ReadOnly(_) | Handle::Closed => Err(self.read_only()),
        }
    }

    pub(super) fn check_writable(&self) -> Result<()> {
        match &*self.opened.handle() {
            Handle::Writable(_) => self.opened.poison.check(self.opened.path.as_deref()),
            Handle::ReadOnly(_) | Handle::Closed => Err(self.read_only()),
        }
    }

    fn read_only(&self) -> Error {
        let context = Context::new("it was opened read-only");
        Error::ReadOnly(Box::new(match &self.opened.path {
            Some(path) => context.at(path),
            None => context,
        }))
    }

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
        let mut handle = self.opened.handle.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *handle {
            Handle::Writable(database) => {
                // redb moves no pages while a reader is open.
                self.latest.forget();
                self.fill_pages(database, occasion, None, permit)?;
                database.compact().map_err(error::compacting)?
            }
            Handle::ReadOnly(_) | Handle::Closed => return Err(self.read_only()),
        };
        // The compaction ends with a durable commit, which includes all before it.
        permit.0 = self.version();
        self.space.set_compacted();
        Ok(())
    }

    /// Fills sparse pages until `until`, unless a snapshot or another process may read the pages that this would free.
    fn fill_pages(
        &self,
        database: &Database,
        occasion: Occasion,
        until: Option<Instant>,
        permit: &mut Permit<'_>,
    ) -> Result<()> {
        if self.has_snapshots() || self.opened.sharing == Sharing::WithReaders {
            return Ok(());
        }
        if permit.0 < self.version() {
            let transaction = database.begin_write().map_err(error::storage)?;
            self.commit_to_device(permit, transaction, self.version())?;
        }
        let has_room = |used: u64| self.space.length().is_some_and(|length| length >= used.saturating_add(ROOM));
        if occasion != Occasion::Call && !pages::used_bytes(self.opened.storage(), until)?.is_some_and(has_room) {
            return Ok(());
        }
        rewrite::fill(database, self.opened.storage(), until, |transaction| self.commit_step(permit, transaction))
    }

    /// Makes a step of a compaction durable.
    fn commit_step(&self, permit: &mut Permit<'_>, transaction: WriteTransaction) -> Result<()> {
        self.commit_to_device(permit, transaction, self.version())?;
        crash_point("between-rewritten-chunks");
        Ok(())
    }

    /// Fills sparse pages and moves pages to the front of a file that is too large to be compacted as a whole when it is closed, for a
    /// limited time. redb then cuts free pages at the end.
    fn compact_in_steps(&self, permit: &mut Permit<'_>) -> Result<()> {
        // Pages that somebody may read are not freed, so the file would grow.
        if self.opened.sharing == Sharing::WithReaders || self.has_snapshots() {
            return Ok(());
        }
        let (begin, before) = (Instant::now(), self.space.length());
        let time = self.space.time_for_steps();
        // The file can only be cut behind pages that were moved.
        let (filled, end) = (begin.checked_add(time * 2 / 3), begin.checked_add(time));
        let compacted = match &*self.opened.handle() {
            Handle::Writable(database) => self.fill_pages(database, Occasion::Close, filled, permit).and_then(|()| {
                let storage = self.opened.storage();
                move_to_front(database, storage, end, |transaction| self.commit_step(permit, transaction))
            }),
            Handle::ReadOnly(_) | Handle::Closed => return Ok(()),
        };
        trace::compacted(Occasion::Close.name(), [before, self.space.length()], begin.elapsed(), &compacted);
        compacted
    }

    /// Returns the oldest commit that is still read, if it is not the last one.
    pub(super) fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        let oldest = self.latest.superseded.oldest(Some(self.opened.transferred.written()));
        oldest.filter(|oldest| oldest.version < self.version())
    }

    /// Returns whether the next durable commit also stores what a fast open after a crash needs.
    ///
    /// That is redb's allocator state, whose size follows the length of the file, in pages that redb does not free while a snapshot is open
    /// that is older than the commit. With each commit the file then grows by its state, and the state with the file. A commit
    /// beside an old snapshot therefore does without it, and then the first open after a crash reads the whole file.
    fn stores_recovery(&self) -> bool {
        /// With this many commits after its own a snapshot is old.
        const OLD: u64 = 64;
        let has_old_snapshot = match self.opened.sharing {
            Sharing::Exclusive => {
                self.oldest_snapshot().is_some_and(|oldest| self.version().0 - oldest.version.0 >= OLD)
            }
            // redb does not tell which snapshots other processes have, but a file that grows much beyond its data shows one.
            Sharing::WithReaders => self.space.is_overgrown(),
        };
        self.recovery == Recovery::WithEachCommit && !has_old_snapshot
    }

    fn has_snapshots(&self) -> bool {
        self.latest.forget();
        Arc::strong_count(&self.opened) > 1
    }

    /// Compacts the file if it is worthwhile and will not take long; a file that would take long is compacted in steps when it is closed.
    /// Does not return a failure: if the device is at fault, the next commit fails.
    fn save_space(&self, occasion: Occasion, permit: &mut Permit<'_>) {
        let begin = Instant::now();
        let Ok(has_read) = self.survey(occasion, permit) else { return };
        let manner = self.space.should_compact(occasion);
        match manner {
            None => {}
            // The compaction fails at once, which is reported.
            Some(Manner::Whole) if self.has_snapshots() => drop(self.compact_on(occasion, permit)),
            Some(Manner::Whole) => match self.inspect(begin.checked_add(occasion.patience()), permit) {
                Ok(Inspected::Sound) => drop(self.compact_on(occasion, permit)),
                Ok(Inspected::Late) if occasion == Occasion::Close => drop(self.compact_in_steps(permit)),
                Ok(Inspected::Late | Inspected::Damaged) | Err(_) => {}
            },
            Some(Manner::Steps) => drop(self.compact_in_steps(permit)),
        }
        if has_read || manner.is_some() {
            self.space.set_tried(begin);
        }
    }

    /// Compares all pages of tables with their checksums, to which a compaction gives new ones, until `until`.
    fn inspect(&self, until: Option<Instant>, permit: &mut Permit<'_>) -> Result<Inspected> {
        if permit.0 < self.version() {
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
        if permit.0 < self.version() {
            self.sync(permit)?;
        }
        let until = (occasion == Occasion::Flush).then(|| Instant::now().checked_add(occasion.patience())).flatten();
        if let Some(used) = pages::used_bytes(self.opened.storage(), until)? {
            self.space.set_used(used);
        }
        Ok(true)
    }

    /// Compares the pages of the last commit with their checksums. Writers wait while the own tables of redb are checked.
    pub(super) fn check(&self, visitor: &mut dyn FnMut(Checked) -> ControlFlow<()>) -> Result<()> {
        let storage = self.opened.storage();
        let (permit, header, held) = self.synced()?;
        let Some(header) = header else {
            let detail = "the header does not have its checksum".to_owned();
            let _ = visitor(Checked::Damaged(Damage { keyspace: None, after: None, up_to: None, detail }));
            return Ok(());
        };
        let mut walk = Walk::new(header, storage, visitor).map_err(error::reading)?;
        // While another process writes, its own tables may change at any moment.
        if !self.follows() && walk.own_tables().is_break() {
            return Ok(());
        }
        drop(permit);
        let _ = walk.tables();
        drop(held);
        Ok(())
    }

    /// Fails if a [check](Self::check) finds damage. `undone` says what is not done then.
    pub(super) fn refuse_damage(&self, undone: &str) -> Result<()> {
        let Some(damage) = self.first_damage()? else { return Ok(()) };
        let context = Context::new(format!("{undone}: {}", damage.detail));
        Err(Error::Corrupt(Box::new(match &self.opened.path {
            Some(path) => context.at(path),
            None => context,
        })))
    }

    /// Returns the first damage that [`check`](Self::check) finds.
    fn first_damage(&self) -> Result<Option<Damage>> {
        let mut found = None;
        self.check(&mut |checked| match checked {
            Checked::Bytes(_) => ControlFlow::Continue(()),
            Checked::Damaged(damage) => {
                found = Some(damage);
                ControlFlow::Break(())
            }
        })?;
        Ok(found)
    }

    /// Syncs all commits. Returns the permit to write, and what [`last_on_device`](Self::last_on_device) returns.
    fn synced(&self) -> Result<(Permit<'_>, Option<Header>, RedbSnapshot)> {
        // Also after a panic, which forbids only writes.
        let mut permit = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        if permit.0 < self.version() && self.check_writable().is_ok() {
            self.opened.guarded(|| self.sync(&mut permit))?;
        }
        let (header, held) = self.last_on_device()?;
        Ok((permit, header, held))
    }

    /// Returns the header with the last commit on the device, and a snapshot that holds the pages of that commit.
    fn last_on_device(&self) -> Result<(Option<Header>, RedbSnapshot)> {
        loop {
            let before = pages::header(self.opened.storage())?;
            let held = self.snapshot()?;
            // Another process may have made a commit in between.
            if pages::header(self.opened.storage())? == before {
                return Ok((before, held));
            }
        }
    }

    /// Syncs all commits, and returns the bytes of the pages of all tables, of which it reads the branch pages. `None` if one is damaged.
    pub(super) fn synced_used_bytes(&self) -> Result<Option<u64>> {
        let (permit, _, held) = self.synced()?;
        drop(permit);
        let used = pages::used_bytes(self.opened.storage(), None);
        drop(held);
        used
    }

    pub(super) fn apply(&self, changes: &mut Changes<'_>, durability: Durability) -> Result<Version> {
        let mut permit = self.permit()?;
        self.opened.guarded(|| self.apply_with(&mut permit, changes, durability))
    }

    fn apply_with(
        &self,
        permit: &mut Permit<'_>,
        changes: &mut Changes<'_>,
        durability: Durability,
    ) -> Result<Version> {
        let begin = Instant::now();
        let transaction = self.begin(permit)?;
        let version = Version(self.version().0 + 1);
        let mut applying = Applying::new(&transaction);
        changes.each(version, |keyspace, change| applying.apply(keyspace, change))?;
        let written = applying.written;
        drop(applying);
        version::write(&transaction, version)?;
        // Other processes see every commit, and must not see one that is not on the device.
        if durability == Durability::Sync || self.opened.sharing == Sharing::WithReaders {
            let _previous = self.previous_version(written)?;
            self.commit_to_device(permit, transaction, version)?;
        } else {
            self.commit_to_memory(transaction, version)?;
        }
        self.space.committed(written, begin.elapsed());
        Ok(version)
    }

    /// Returns a reader of the last commit, to keep open while a transaction is committed durably, so that the commit leaves no page
    /// in redb's write buffer.
    ///
    /// After a durable commit redb frees the pages that it has replaced, and what it writes about that stays in the buffer until
    /// the next durable commit. Meanwhile every page that is read from the file while the cache is full costs a search of the whole
    /// buffer: two microseconds, half of the time of a scan (redb 4.6). With such a reader, redb frees these pages in the next commit
    /// instead. That costs their space, so there is no reader if they can be more than an eighth of the file.
    ///
    /// In a file shared with readers redb always frees pages in the next commit.
    fn previous_version(&self, written: Written) -> Result<Option<ReadTransaction>> {
        let is_small = !written.has_dropped && self.space.length().is_none_or(|length| written.replaced <= length / 8);
        (is_small && self.opened.sharing == Sharing::Exclusive).then(|| self.opened.handle().begin_read()).transpose()
    }

    fn commit_to_memory(&self, mut transaction: WriteTransaction, version: Version) -> Result<()> {
        transaction.set_durability(::redb::Durability::None).map_err(error::storage)?;
        self.make(transaction, version)
    }

    fn commit_to_device(
        &self,
        permit: &mut Permit<'_>,
        mut transaction: WriteTransaction,
        version: Version,
    ) -> Result<()> {
        transaction.set_quick_repair(self.stores_recovery());
        self.make(transaction, version)?;
        permit.0 = version;
        Ok(())
    }

    fn make(&self, transaction: WriteTransaction, version: Version) -> Result<()> {
        let made = transaction.commit();
        if made.is_ok() {
            self.version.store(version.0, Ordering::Release);
        }
        // A failed commit may be visible as well.
        self.latest.forget();
        made.map_err(error::committing)
    }

    pub(super) fn flush(&self) -> Result<()> {
        if matches!(&*self.opened.handle(), Handle::ReadOnly(_)) {
            return Ok(());
        }
        let mut permit = self.permit()?;
        self.opened.guarded(|| self.flush_with(&mut permit))
    }

    fn flush_with(&self, permit: &mut Permit<'_>) -> Result<()> {
        if permit.0 < self.version() {
            self.sync(permit).map_err(unsynced)?;
            // The first commit has freed pages that deferred commits replaced; the second one frees none and so empties redb's
            // write buffer. If it fails, all commits are on the device nevertheless, and the next commit fails, too.
            let _ = self.sync(permit);
        }
        self.save_space(Occasion::Flush, permit);
        Ok(())
    }

    /// Syncs all commits: an empty durable commit of redb includes all before it.
    fn sync(&self, permit: &mut Permit<'_>) -> Result<()> {
        let transaction = self.begin(permit)?;
        self.commit_to_device(permit, transaction, self.version())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Ok(mut permit) = self.permit() {
            let _ = self.opened.guarded(|| {
                self.save_space(Occasion::Close, &mut permit);
                Ok(())
            });
        }
    }
}

/// Returns the error of visible commits that did not reach the device. After a failed sync redb rejects all later
/// commits, so every writer that waits for a sync returns this error.
fn unsynced(source: Error) -> Error {
    let context = Context::new("the sync of the device that was to include it failed");
    Error::OutcomeUnknown(Box::new(context.because(source)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{
        Access, Bounds, Keyspace, View,
        redb::{Options, open, snapshot::RedbSnapshot, table},
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

    /// Commits entries of which each transaction inserts every twentieth, so that pages are split in their middles.
    fn insert_entries(writer: &Writer) {
        for round in 0..20 {
            let mut permit = writer.permit().unwrap();
            let transaction = writer.begin(&permit).unwrap();
            let mut entries = transaction.open_table(table::definition(&table::name(KEYSPACE))).unwrap();
            for key in (0..ENTRIES).step_by(20).map(|key| key + round * 7 % 20) {
                entries.insert(&key.to_be_bytes()[..], &value(key)[..]).unwrap();
            }
            drop(entries);
            writer.commit_to_device(&mut permit, transaction, writer.version()).unwrap();
        }
    }

    fn is_whole(writer: &Writer) -> bool {
        let mut next = 0_u32;
        let wrong = RedbSnapshot::open(&writer.opened).unwrap().scan(KEYSPACE, Bounds::ALL, |key, found| {
            let is_right = key == next.to_be_bytes() && found == value(next);
            next += 1;
            if is_right { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        wrong.unwrap().is_none() && next == ENTRIES
    }

    #[test]
    fn steps_end_when_their_time_is_over_and_change_no_entry() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let writer = writer(&path);
        insert_entries(&writer);
        let used = || pages::used_bytes(writer.opened.storage(), None).unwrap().unwrap();
        let fill = |until| {
            let mut permit = writer.permit().unwrap();
            let handle = writer.opened.handle();
            let Handle::Writable(database) = &*handle else { panic!("opened for writing") };
            writer.fill_pages(database, Occasion::Call, until, &mut permit).unwrap();
        };
        let sparse = used();
        assert_eq!(pages::used_bytes(writer.opened.storage(), Some(Instant::now())).unwrap(), None);
        let inspect = |until| writer.inspect(until, &mut writer.permit().unwrap()).unwrap();
        assert_eq!([Some(Instant::now()), None].map(inspect), [Inspected::Late, Inspected::Sound]);
        fill(Some(Instant::now()));
        assert_eq!(used(), sparse);

        fill(None);
        assert!(used() < sparse * 4 / 5, "{} of {sparse} bytes", used());
        // The pages that the steps have freed are free, and not all new ones were added to the file.
        let stats = writer.begin(&writer.permit().unwrap()).unwrap().stats().unwrap();
        let allocated = stats.allocated_pages() * u64::try_from(stats.page_size()).unwrap();
        assert!(allocated < used() + ROOM, "{allocated} bytes are allocated for {}", used());
        assert!(is_whole(&writer));

        writer.compact_in_steps(&mut writer.permit().unwrap()).unwrap();
        assert!(is_whole(&writer));
        // Closing does not compact the file as a whole.
        writer.space.set_compacted();
        let dense = used();
        drop(writer);
        let length = path.metadata().unwrap().len();
        assert!(length < dense + dense / 64 + 2 * ROOM, "{length} bytes for {dense}");
        assert!(is_whole(&self::writer(&path)));
    }
}
