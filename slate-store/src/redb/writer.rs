use std::{
    ops::ControlFlow,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Instant,
};

use ::redb::{Savepoint, WriteTransaction};

use super::{
    apply::{Applying, Written},
    backlog::Cleared,
    compact::StepWaits,
    error,
    latest::Latest,
    open::{Handle, OpenedFile},
    options::{Options, Recovery, Sharing},
    pages::{self, Header, PageWalk},
    snapshot::RedbSnapshot,
    space::{Occasion, Space},
    steps::Stepping,
    version,
};
use crate::{Changes, Checked, Context, Damage, Durability, Error, OldestSnapshot, Result, Version};

/// Makes commits and flushes, and compacts the file (`compact.rs`).
pub(super) struct RedbWriter {
    pub(super) opened: Arc<OpenedFile>,
    pub(super) latest: Latest,
    pub(super) space: Space,
    recovery: Recovery,
    /// The version of the last commit when the database was opened.
    pub(super) opened_at: Version,
    /// The version of the last commit. Changed only by the holder of the permit.
    version: AtomicU64,
    /// Whether a commit did not fit. If redb rejects later writes, this is the reason that is reported.
    was_full: AtomicBool,
    durable: Mutex<Durable>,
}

/// What is on the device. Its lock is held by each write transaction of redb, which admits one at a time.
pub(super) struct Durable {
    /// The last commit that redb has written, perhaps only to the [backlog](super::backlog).
    pub(super) version: Version,
    /// The last commit on the device.
    on_device: Version,
    /// The current compaction in steps.
    pub(super) stepping: Option<Stepping>,
    pub(super) step_waits: Option<StepWaits>,
}

/// The permit to write.
pub(super) type Permit<'w> = MutexGuard<'w, Durable>;

impl RedbWriter {
    pub(super) fn new(opened: OpenedFile, options: &Options) -> Result<Self> {
        let version = opened.guarded(|| version::read(&opened.handle().begin_read()?))?;
        Ok(Self {
            space: Space::of(opened.path.clone(), options),
            opened: Arc::new(opened),
            latest: Latest::default(),
            recovery: options.recovery,
            opened_at: version,
            version: AtomicU64::new(version.0),
            was_full: AtomicBool::new(false),
            durable: Mutex::new(Durable { version, on_device: version, stepping: None, step_waits: None }),
        })
    }

    /// Returns whether another process may write to the database.
    pub(super) fn follows(&self) -> bool {
        self.opened.sharing == Sharing::WithReaders && matches!(&*self.opened.handle(), Handle::ReadOnly(_))
    }

    /// Returns a snapshot of the last commit.
    pub(super) fn snapshot(&self) -> Result<RedbSnapshot> {
        if self.follows() {
            return RedbSnapshot::open(&self.opened);
        }
        loop {
            if let Some(snapshot) = self.latest.snapshot(&self.opened)? {
                return Ok(snapshot);
            }
            self.opened.storage.wait_until_undone();
        }
    }

    pub(super) fn version(&self) -> Version {
        Version(self.version.load(Ordering::Acquire))
    }

    /// Waits for the permit to write. Fails if the database is read-only, or while the device is full.
    pub(super) fn permit(&self) -> Result<Permit<'_>> {
        self.check_writable()?;
        let mut permit = self.lock();
        self.clear_backlog(&mut permit)?;
        Ok(permit)
    }

    fn lock(&self) -> Permit<'_> {
        // No code under this lock can panic between two dependent updates.
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the backlog to the device.
    fn clear_backlog(&self, permit: &mut Permit<'_>) -> Result<()> {
        match self.opened.storage.clear() {
            Cleared::All => {
                permit.on_device = permit.version;
                Ok(())
            }
            Cleared::Full(error) => Err(error::full(error)),
            Cleared::Failed(error) => Err(error::backlog(error)),
        }
    }

    /// Begins a transaction of redb. The permit guarantees that redb has no other writer and does not block.
    pub(super) fn begin(&self, _: &Permit<'_>) -> Result<WriteTransaction> {
        match &*self.opened.handle() {
            Handle::Writable(database) => {
                // Drops the shared snapshot first, so that redb can reuse the pages that only it holds.
                self.latest.forget();
                database.begin_write().map_err(|error| error::beginning(error, self.was_full.load(Ordering::Relaxed)))
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

    pub(super) fn read_only(&self) -> Error {
        let context = Context::new("it was opened read-only");
        Error::ReadOnly(Box::new(match &self.opened.path {
            Some(path) => context.at(path),
            None => context,
        }))
    }

    /// Returns the oldest open snapshot, unless it shows the last commit.
    pub(super) fn oldest_snapshot(&self) -> Option<OldestSnapshot> {
        let written = self.opened.transferred.written();
        let oldest = self.latest.superseded.oldest(|_, before| written.saturating_sub(before));
        oldest.filter(|oldest| oldest.version < self.version())
    }

    /// Returns whether the next durable commit also stores redb's allocator state, which a fast open after a crash needs.
    ///
    /// The state is proportional to the length of the file. While a snapshot is open that is older than the commit, redb does not free the pages of
    /// earlier states, so each commit would lengthen the file by its state, and a longer file has a larger state. Without the state, the first open
    /// after a crash reads the whole file.
    fn stores_recovery(&self) -> bool {
        /// A snapshot is old if at least this many commits followed.
        const OLD: u64 = 64;
        let has_old_snapshot = match self.opened.sharing {
            Sharing::Exclusive => {
                self.oldest_snapshot().is_some_and(|oldest| self.version().0 - oldest.version.0 >= OLD)
            }
            // The snapshots of other processes are unknown, but a file that grows much beyond its data is a sign of one.
            Sharing::WithReaders => self.space.is_overgrown(),
        };
        self.recovery == Recovery::WithEachCommit && !has_old_snapshot
    }

    pub(super) fn has_snapshots(&self) -> bool {
        self.latest.forget();
        Arc::strong_count(&self.opened) > 1
    }

    /// Compares the pages of the last commit with their checksums. Writers wait while redb's own tables are checked.
    pub(super) fn check(&self, visitor: &mut dyn FnMut(Checked) -> ControlFlow<()>) -> Result<()> {
        let storage = self.opened.storage();
        let (permit, header, held) = self.synced()?;
        let Some(header) = header else {
            let detail = "the header does not have its checksum".to_owned();
            let _ = visitor(Checked::Damaged(Damage { keyspace: None, after: None, up_to: None, detail }));
            return Ok(());
        };
        let mut walk = PageWalk::new(header, storage, visitor).map_err(error::reading)?;
        // While another process writes, redb's own tables can change at any time.
        if !self.follows() && walk.own_tables().is_break() {
            return Ok(());
        }
        drop(permit);
        let _ = walk.tables();
        drop(held);
        Ok(())
    }

    /// Fails if a [check](Self::check) finds damage. `undone` begins the message: it says what was not done.
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
        // Also works after a panic, which forbids only writes. On a full device, pages are compared as they are in the backlog.
        let mut permit = self.lock();
        if permit.version < self.version() && self.check_writable().is_ok() {
            match self.opened.guarded(|| self.sync(&mut permit)) {
                Err(Error::Full(_)) if permit.version == self.version() => {}
                synced => synced?,
            }
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

    /// Syncs all commits, and returns the bytes of the pages of all tables. Reads their branches only. `None` if one is damaged.
    pub(super) fn synced_used_bytes(&self) -> Result<Option<u64>> {
        let (permit, _, held) = self.synced()?;
        drop(permit);
        let used = pages::used_bytes(self.opened.storage(), None);
        drop(held);
        used
    }

    pub(super) fn apply(&self, changes: &mut Changes<'_>, durability: Durability) -> Result<Version> {
        let mut permit = self.permit()?;
        let applied = self.opened.guarded(|| self.apply_with(&mut permit, changes, durability));
        if applied.as_ref().is_err_and(Error::is_about_space) {
            self.was_full.store(true, Ordering::Relaxed);
        }
        applied
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
        let sharing = self.opened.sharing;
        let is_undoable = durability == Durability::Sync && sharing == Sharing::Exclusive && self.space.is_scarce();
        let before = is_undoable.then(|| transaction.ephemeral_savepoint()).transpose().map_err(error::storage)?;
        let mut applying = Applying::new(&transaction, &self.opened.storage);
        changes.each(version, |keyspace, change| applying.apply(keyspace, change))?;
        let written = applying.written;
        drop(applying);
        version::write(&transaction, version)?;
        match (before, durability, sharing) {
            (Some(before), _, _) => {
                self.commit_or_undo(permit, transaction, version, &before)?;
                drop(before);
                self.free_replaced(permit, written);
            }
            (None, Durability::Sync, Sharing::Exclusive) => {
                self.commit_with_room(permit, transaction, version)?;
                self.free_replaced(permit, written);
            }
            // Other processes see every commit, and must not see one that is not on the device.
            (None, _, Sharing::WithReaders) => self.commit_to_device(permit, transaction, version)?,
            (None, Durability::Deferred, Sharing::Exclusive) => self.commit_to_memory(transaction, version)?,
        }
        self.space.committed(written, begin.elapsed());
        if let Some(stepping) = &mut permit.stepping {
            stepping.committed(written);
        }
        Ok(version)
    }

    /// Commits durably to a device with enough free space.
    ///
    /// While a reader of the previous commit is open, redb cannot free the replaced pages right after this commit; the next commit frees them.
    /// Freeing them here would leave writes in redb's write buffer until the next durable commit, and until then each page read while the cache is
    /// full would search that buffer. In a file shared with readers, the next commit always frees them.
    fn commit_with_room(&self, permit: &mut Permit<'_>, transaction: WriteTransaction, version: Version) -> Result<()> {
        let storage = &self.opened.storage;
        if storage.is_behind() {
            return Err(error::full(storage.full()));
        }
        let _before = self.opened.handle().begin_read()?;
        match self.commit_to_device(permit, transaction, version) {
            Err(full @ Error::Full(_)) if storage.is_behind() => Err(error::not_undone(full)),
            made => made,
        }
    }

    /// Commits durably. If the device is full, returns to the state `before` the transaction. The savepoint costs the commit two pages. As the
    /// reader in [`commit_with_room`](Self::commit_with_room) does, it leaves freeing replaced pages to the next commit.
    fn commit_or_undo(
        &self,
        permit: &mut Permit<'_>,
        transaction: WriteTransaction,
        version: Version,
        before: &Savepoint,
    ) -> Result<()> {
        let storage = &self.opened.storage;
        let Some(undoable) = storage.begin_undoable() else { return Err(error::full(storage.full())) };
        self.make_durable(transaction)?;
        if undoable.end() {
            return self.undo(permit, before).and(Err(error::full(storage.full())));
        }
        self.committed(permit, version);
        Ok(())
    }

    /// Frees the pages that the last commit replaced if they are many: otherwise the next commit would lengthen the file.
    fn free_replaced(&self, permit: &mut Permit<'_>, written: Written) {
        /// Minimum bytes of replaced pages for which another commit is worthwhile.
        const MANY: u64 = 16 << 20;
        let part = self.space.length().map_or(MANY, |length| MANY.max(length / 8));
        if written.has_dropped || written.replaced > part {
            // The commit is on the device. If the device fails now, the next commit fails.
            let _ = self.sync(permit);
        }
    }

    /// Undoes the last commit by another one.
    fn undo(&self, permit: &mut Permit<'_>, before: &Savepoint) -> Result<()> {
        let undo = || {
            let mut transaction = self.begin(permit)?;
            transaction.restore_savepoint(before).map_err(error::storage)?;
            self.make_durable(transaction)
        };
        undo().map_err(error::not_undone)?;
        permit.version = self.version();
        Ok(())
    }

    fn commit_to_memory(&self, mut transaction: WriteTransaction, version: Version) -> Result<()> {
        transaction.set_durability(::redb::Durability::None).map_err(error::storage)?;
        self.make(transaction)?;
        self.version.store(version.0, Ordering::Release);
        Ok(())
    }

    /// Commits durably. If the device is full, redb shows the commit all the same, so `transaction` must not change any committed data.
    pub(super) fn commit_to_device(
        &self,
        permit: &mut Permit<'_>,
        transaction: WriteTransaction,
        version: Version,
    ) -> Result<()> {
        self.make_durable(transaction)?;
        self.committed(permit, version);
        let storage = &self.opened.storage;
        if storage.is_behind() { Err(error::full(storage.full())) } else { Ok(()) }
    }

    /// Records that redb has written all commits up to this one.
    pub(super) fn committed(&self, permit: &mut Permit<'_>, version: Version) {
        self.version.store(version.0, Ordering::Release);
        permit.version = version;
        if !self.opened.storage.is_behind() {
            permit.on_device = version;
        }
    }

    fn make_durable(&self, mut transaction: WriteTransaction) -> Result<()> {
        transaction.set_quick_repair(self.stores_recovery());
        self.make(transaction)
    }

    fn make(&self, transaction: WriteTransaction) -> Result<()> {
        let made = transaction.commit();
        // A failed commit may be visible as well.
        self.latest.forget();
        made.map_err(error::committing)
    }

    pub(super) fn flush(&self) -> Result<()> {
        if matches!(&*self.opened.handle(), Handle::ReadOnly(_)) {
            return Ok(());
        }
        self.check_writable()?;
        let mut permit = self.lock();
        match self.clear_backlog(&mut permit) {
            // The backlog has only failed commits and the commits that undo them.
            Err(Error::Full(_)) if permit.on_device == self.version() => Ok(()),
            Err(error) => Err(unsynced(error)),
            Ok(()) => self.opened.guarded(|| self.flush_with(&mut permit)),
        }
    }

    fn flush_with(&self, permit: &mut Permit<'_>) -> Result<()> {
        if permit.version < self.version() {
            self.sync(permit).map_err(unsynced)?;
            // The first commit has freed pages that deferred commits replaced; the second one frees none and so empties redb's
            // write buffer. If it fails, all commits are on the device nevertheless, and the next commit fails, too.
            let _ = self.sync(permit);
        }
        self.save_space(Occasion::Flush, permit);
        Ok(())
    }

    /// Syncs all commits: an empty durable commit of redb includes all earlier ones.
    pub(super) fn sync(&self, permit: &mut Permit<'_>) -> Result<()> {
        let transaction = self.begin(permit)?;
        self.commit_to_device(permit, transaction, self.version())
    }
}

impl Drop for RedbWriter {
    fn drop(&mut self) {
        if let Ok(mut permit) = self.permit() {
            let _ = self.opened.guarded(|| {
                self.save_space(Occasion::Close, &mut permit);
                Ok(())
            });
        }
    }
}

/// Returns the error of visible commits that did not reach the device. After a failed sync redb rejects all later commits, so every writer that
/// waits for a sync returns this error. On a full device they are buffered in memory, and reach it with the next write or flush that fits.
fn unsynced(source: Error) -> Error {
    let context = Context::new("the sync of the device that was to include it failed");
    Error::OutcomeUnknown(Box::new(context.because(source)))
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Barrier, mpsc},
        thread,
        time::Duration,
    };

    use ::redb::StorageBackend;

    use super::*;
    use crate::{
        Bounds, Keyspace, View,
        optimistic::WriteSet,
        redb::{Options, backlog::tests::Device, open},
    };

    const KEYSPACE: Keyspace = Keyspace(1);

    fn write(writer: &RedbWriter, key: &[u8]) -> Result<Version> {
        let mut writes = WriteSet::default();
        writes.write(KEYSPACE, &[(key, Some(&[0; 400]))]);
        writer.apply(&mut Changes::of(&writes), Durability::Sync)
    }

    /// Simulates free space that disappears during the commit: a quota, or another process that writes.
    #[test]
    fn a_commit_whose_end_does_not_fit_on_a_device_with_much_room_has_an_unknown_outcome() {
        let (has_room, options) = (Arc::new(AtomicBool::new(true)), Options::default());
        let elsewhere = tempfile::NamedTempFile::new().unwrap();
        let mut writer = RedbWriter::new(open::over(Device::new(&has_room), &options).unwrap(), &options).unwrap();
        writer.space = Space::of(Some(elsewhere.path().into()), &options);
        if writer.space.is_scarce() {
            // A machine whose own device is nearly full cannot try this.
            return;
        }
        write(&writer, b"a").unwrap();
        has_room.store(false, Ordering::SeqCst);
        let error = write(&writer, b"b").unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown(_)), "{error}");
        let keys = |writer: &RedbWriter| writer.snapshot().unwrap().count(KEYSPACE, Bounds::ALL, |_| true).unwrap();
        assert_eq!(keys(&writer), Some(2), "it is visible");
        assert!(matches!(write(&writer, b"c"), Err(Error::Full(_))));
        has_room.store(true, Ordering::SeqCst);
        writer.flush().unwrap();
        assert_eq!(keys(&writer), Some(2));
    }

    /// A device whose first read after `is_armed` was set waits twice: for `arrived`, then for `let_go`.
    #[derive(Debug)]
    struct Gated {
        device: Device,
        gate: Arc<Gate>,
    }

    #[derive(Debug)]
    struct Gate {
        is_armed: AtomicBool,
        arrived: Barrier,
        let_go: Barrier,
    }

    impl StorageBackend for Gated {
        fn len(&self) -> io::Result<u64> {
            self.device.len()
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            if self.gate.is_armed.swap(false, Ordering::SeqCst) {
                self.gate.arrived.wait();
                self.gate.let_go.wait();
            }
            self.device.read(offset, out)
        }

        fn set_len(&self, length: u64) -> io::Result<()> {
            self.device.set_len(length)
        }

        fn sync_data(&self) -> io::Result<()> {
            self.device.sync_data()
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.device.write(offset, data)
        }
    }

    /// A snapshot must not wait for the permit: its holder may wait for the snapshot's transaction, which holds the lock of the log of commits
    /// until it has its snapshot, while the last stage of the holder's commit needs that lock.
    #[test]
    fn a_snapshot_that_meets_a_commit_being_undone_does_not_wait_for_the_permit() {
        /// Long enough for every machine, so that a deadlock fails the test.
        const LONG: Duration = Duration::from_secs(60);
        let has_room = Arc::new(AtomicBool::new(true));
        let gate =
            Arc::new(Gate { is_armed: AtomicBool::new(false), arrived: Barrier::new(2), let_go: Barrier::new(2) });
        // Without a cache, so that opening a snapshot reads from the device.
        let options = Options::default().cache_bytes(0);
        let device = Gated { device: Device::new(&has_room), gate: Arc::clone(&gate) };
        let writer = RedbWriter::new(open::over(device, &options).unwrap(), &options).unwrap();
        let before = write(&writer, b"a").unwrap();
        writer.latest.forget();
        let (opened, is_opened) = mpsc::channel();
        thread::scope(|scope| {
            let permit = writer.permit().unwrap();
            let storage = &writer.opened.storage;
            gate.is_armed.store(true, Ordering::SeqCst);
            scope.spawn(|| opened.send(writer.snapshot().unwrap().version()).unwrap());
            gate.arrived.wait();
            // A commit does not fit while the snapshot is being opened.
            let undoable = storage.begin_undoable().unwrap();
            has_room.store(false, Ordering::SeqCst);
            let mut page = [0; 4096];
            storage.read(0, &mut page).unwrap();
            storage.write(0, &page).unwrap();
            assert!(storage.stable().is_none(), "it is going to be undone");
            gate.let_go.wait();
            assert!(undoable.end());
            assert!(is_opened.try_recv().is_err(), "what it shows may be undone");
            drop(undoable);
            let opened = is_opened.recv_timeout(LONG);
            drop(permit);
            assert_eq!(opened, Ok(before));
        });
        has_room.store(true, Ordering::SeqCst);
        write(&writer, b"b").unwrap();
        assert_eq!(writer.snapshot().unwrap().count(KEYSPACE, Bounds::ALL, |_| true).unwrap(), Some(2));
    }
}
