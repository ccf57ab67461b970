use std::{
    ops::ControlFlow,
    path::Path,
    sync::{Arc, Weak},
    thread::sleep,
    time::{Duration, Instant},
};

use slate_query::{Code, raw::Doc};
use slate_store::{
    BackupProgress, CacheReads, Capabilities, Checked, Durability, Size, SizeDetail, Store, Transaction, View,
};

use super::{
    engine::{Engine, IdMatch, RecordVisitor, SharedReader, Writer},
    open::OpenOptions,
    reader::SnapshotReader,
    upkeep::{DropQueue, StaleQueue},
};
use crate::{
    Error, ErrorKind, Isolation, Result,
    catalog::{self, Catalog, CatalogCache, CatalogCheck},
    changes::{LogTail, Wakers},
    clock,
    commit::{
        ANNOUNCEMENT_HOLD as HOLD, ANNOUNCEMENT_PAUSE, Announced, Announcements, Leases, OptimisticValidator,
        Validation,
    },
    interrupt::Interrupt,
    metrics::{Metrics, Observer, PointRead, trace},
    spill::Memory,
    write::{AfterCommit, BeginOptions, Confirmed, Session, Shared, StatisticsStaleness},
};

/// Implements [`Engine`] for any store.
pub(super) struct Backend<S> {
    pub(super) store: S,
    pub(super) shared: Arc<Shared>,
    validator: Arc<OptimisticValidator>,
    /// For background threads, which must not keep a closed database's store open.
    pub(super) this: Weak<Self>,
    pub(super) stale: StaleQueue,
    pub(super) drops: Arc<DropQueue>,
}

impl<S: Store> Backend<S> {
    /// Opens a store: checks the catalog's format and executes pending drops, on a store that several processes write to in the background. Drops
    /// that fail stay pending.
    pub(super) fn open(store: S, options: &OpenOptions) -> Result<Arc<Self>> {
        let observer = Arc::new(Observer::new(options.slow_queries.clone()));
        let shared = Shared {
            catalogs: CatalogCache::new(store.capabilities().exclusive),
            staleness: StatisticsStaleness::default(),
            announcements: Announcements::default(),
            leases: Leases::default(),
            memory: options.memory.observed_by(observer),
            capabilities: store.capabilities(),
            tail: LogTail::default(),
            wakers: Arc::default(),
        };
        let backend = Arc::new_cyclic(|this| Self {
            store,
            shared: Arc::new(shared),
            validator: Arc::default(),
            this: Weak::clone(this),
            stale: StaleQueue::default(),
            drops: Arc::default(),
        });
        // The view is dropped first, so that each drop can use the space that the previous one freed.
        let pending = catalog::pending_drops(backend.reader()?.view())?;
        backend.execute_drops(&pending);
        Ok(backend)
    }

    /// Trims the log of changes to its limits.
    fn trim_log(&self, wait: Duration) -> Result<()> {
        let now = clock::now_millis();
        let limits = Interrupt::default();
        let options = BeginOptions { wait, isolation: Isolation::default(), limits, announced: None };
        loop {
            let mut writer = Engine::begin(self, &options)?;
            if !writer.trim_change_log(now)? {
                break;
            }
            writer.commit(Durability::Deferred)?;
        }
        let (view, catalog) = self.last()?;
        catalog.change_log().map_or(Ok(()), |log| self.shared.tail.trimmed(&view, log))
    }

    fn reader(&self) -> Result<SnapshotReader<S::Snapshot>> {
        let (view, catalog) = self.last()?;
        Ok(SnapshotReader::new(view, catalog, self.shared.memory.clone()))
    }

    /// Calls `visitor` with the record under `key` in the latest commit, if it exists. `NeedsQuery` for a view, and for [`IdMatch::Filter`] in a
    /// collection with a collation. `Postponed` if the read would have to wait or the catalog changes meanwhile.
    fn try_visit(&self, collection: &str, key: &[u8], id: IdMatch, visitor: RecordVisitor<'_>) -> Result<PointRead> {
        self.observer().point_read(collection, || {
            let records = |catalog: &Catalog| match catalog.collection(collection) {
                None if catalog.view(collection).is_some() => Err(PointRead::NeedsQuery),
                None => Err(PointRead::Missing),
                Some(found) if id == IdMatch::Filter && found.collation.is_some() => Err(PointRead::NeedsQuery),
                Some(found) => {
                    found.uses.ids.add();
                    Ok(found.records)
                }
            };
            let catalogs = &self.shared.catalogs;
            let (records, version) = match catalogs.try_with(records) {
                None => return Ok(PointRead::Postponed),
                Some((Err(read), _)) => return Ok(read),
                Some((Ok(records), version)) => (records, version),
            };
            // The store reads its latest commit. By then the collection may have been renamed and written to under its new name.
            let read = self.store.try_get(records, key, |stored| {
                catalogs.is_unchanged_since(version).then(|| PointRead::visit(Doc::stored(stored), visitor))
            })?;
            let is_missing = || catalogs.is_unchanged_since(version).then_some(Ok(PointRead::Missing));
            let Some(found) = read.and_then(|found| found.unwrap_or_else(is_missing)) else {
                // The caller repeats the read on another thread, where it is counted again.
                let uncount =
                    |catalog: &Catalog| catalog.collection(collection).map(|found| found.uses.ids.take_back());
                catalogs.try_with(uncount);
                return Ok(PointRead::Postponed);
            };
            found
        })
    }

    /// Calls `visitor` with the record under `key` in the latest commit, if it exists. Tries [`try_visit`](Self::try_visit) first, then reads that
    /// wait. Inlined, because a point read takes little more time than a function call.
    #[inline(always)]
    fn visit(&self, collection: &str, key: &[u8], id: IdMatch, visitor: RecordVisitor<'_>) -> Result<PointRead> {
        let read = self.try_visit(collection, key, id, visitor)?;
        if read != PointRead::Postponed {
            return Ok(read);
        }
        let latest = || self.visit_latest(collection, key, id, visitor);
        if self.shared.capabilities.remote {
            let read = self.observer().point_read(collection, latest)?;
            if read != PointRead::Postponed {
                return Ok(read);
            }
        }
        let (reader, check) = self.reader_ahead()?;
        let confirm = || check.map_or(Ok(true), |check| Engine::confirm(self, check));
        let read = self.observer().point_read(collection, || reader.visit(collection, key, id, confirm, visitor))?;
        if read != PointRead::Postponed {
            return Ok(read);
        }
        let reader = self.reader()?;
        self.observer().point_read(collection, || reader.visit(collection, key, id, || Ok(true), visitor))
    }

    /// Calls `visitor` with the latest record, if it exists, in one round trip: uses the last known catalog, and reads the version of the definitions
    /// with the record. `Postponed` if that is not enough: on a store without such reads, for a view or a collation, and if another process has
    /// changed the definitions.
    ///
    /// Record and version may be read one after the other. Versions only grow, so the definitions were valid until the version was read. If the
    /// record was read later, a drop in between is harmless: nothing writes to a dropped collection, so the record is as just before the drop, or
    /// missing as just after it. But a collection that was renamed in between may have been written to under its new name.
    fn visit_latest(&self, collection: &str, key: &[u8], id: IdMatch, visitor: RecordVisitor<'_>) -> Result<PointRead> {
        let Some((catalog, version)) = self.shared.catalogs.last_read() else { return Ok(PointRead::Postponed) };
        let Some(found) = catalog.collection(collection) else { return Ok(PointRead::Postponed) };
        if id == IdMatch::Filter && found.collation.is_some() {
            return Ok(PointRead::Postponed);
        }
        let latest = self.store.latest(&[catalog::DEFINITIONS_VERSION, (found.records, key)])?;
        let Some([definitions, record]) = latest.and_then(|latest| <[_; 2]>::try_from(latest).ok()) else {
            return Ok(PointRead::Postponed);
        };
        if !version.has_definitions(definitions.as_deref()) {
            return Ok(PointRead::Postponed);
        }
        found.uses.ids.add();
        record.map_or(Ok(PointRead::Missing), |record| PointRead::visit(Doc::stored(&record), visitor))
    }

    fn reader_ahead(&self) -> Result<(SnapshotReader<S::Snapshot>, Option<CatalogCheck>)> {
        let view = self.store.snapshot()?;
        let (catalog, check) = self.catalog_ahead(&view)?;
        Ok((SnapshotReader::new(view, catalog, self.shared.memory.clone()), check))
    }

    fn session(
        &self,
        transaction: S::Transaction,
        catalog: (Arc<Catalog>, Option<CatalogCheck>),
        options: &BeginOptions,
    ) -> Session<S::Transaction> {
        let validation = match self.store.capabilities().exclusive {
            true => Validation::InProcess(Arc::clone(&self.validator)),
            false => Validation::InStore,
        };
        Session::new(transaction, catalog, Arc::clone(&self.shared), validation, options)
    }

    /// Begins a transaction whose catalog must still be confirmed.
    fn session_ahead(&self, options: &BeginOptions) -> Result<Session<S::Transaction>> {
        let begun = self.store.begin(options.wait).map_err(Error::from);
        let transaction = begun.inspect_err(|error| self.observer().failed(error))?;
        let catalog = self.catalog_ahead(&transaction.view())?;
        Ok(self.session(transaction, catalog, options))
    }

    /// Writes or withdraws announcements of changed definitions (`announcements.rs`), in a transaction of its own.
    /// `write` returns whether it has written anything.
    fn announced(&self, wait: Duration, mut write: impl FnMut(&mut S::Transaction) -> Result<bool>) -> Result<()> {
        let mut transaction = self.store.begin(wait)?;
        if write(&mut transaction)? {
            transaction.commit(Durability::Deferred)?;
        }
        Ok(())
    }

    /// Returns a snapshot of the latest commit, and its catalog.
    pub(super) fn last(&self) -> Result<(S::Snapshot, Arc<Catalog>)> {
        let view = self.store.snapshot()?;
        let catalog = self.shared.catalogs.load(&view)?;
        self.notice_drops();
        Ok((view, catalog))
    }

    /// Returns the catalog of a view; with a `CatalogCheck`, it must still be confirmed.
    fn catalog_ahead(&self, view: &impl View) -> Result<(Arc<Catalog>, Option<CatalogCheck>)> {
        let loaded = self.shared.catalogs.load_ahead(view)?;
        self.notice_drops();
        Ok(loaded)
    }

    /// Starts the execution of pending drops in the background if changed definitions were read, on a store that several processes write to.
    fn notice_drops(&self) {
        if self.shared.catalogs.take_redefined() {
            self.drop_beside();
        }
    }
}

impl<S: Store> Engine for Backend<S> {
    fn observer(&self) -> &Arc<Observer> {
        self.shared.memory.observer()
    }

    fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    fn metrics(&self) -> Metrics {
        let CacheReads { hits: cache_hits, misses: cache_misses, file_bytes: storage_bytes } = self.store.cache_reads();
        let catalog_reads = self.shared.catalogs.reads();
        Metrics {
            cache_hits,
            cache_misses,
            storage_bytes,
            round_trips: self.store.round_trips(),
            requests: self.store.requests(),
            catalog_reads,
            oldest_snapshot: self.store.oldest_snapshot(),
            ..self.observer().metrics()
        }
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    #[cfg(feature = "async")]
    fn tries_queries(&self) -> bool {
        self.store.try_snapshot().is_some()
    }

    fn snapshot(&self) -> Result<SharedReader> {
        Ok(Arc::new(self.reader()?))
    }

    fn try_snapshot(&self) -> Result<Option<SharedReader>> {
        let Some(view) = self.store.try_snapshot() else { return Ok(None) };
        let catalog = self.shared.catalogs.load(&view)?;
        Ok(Some(Arc::new(SnapshotReader::new(view, catalog, self.shared.memory.clone()))))
    }

    fn get(&self, collection: &str, key: &[u8], id: IdMatch, visitor: RecordVisitor<'_>) -> Result<PointRead> {
        if trace::wants_calls() {
            trace::point_read(collection, || self.visit(collection, key, id, visitor))
        } else {
            self.visit(collection, key, id, visitor)
        }
    }

    fn try_get(&self, collection: &str, key: &[u8], id: IdMatch, visitor: RecordVisitor<'_>) -> Result<PointRead> {
        trace::point_read(collection, || self.try_visit(collection, key, id, visitor))
    }

    fn wakers(&self) -> &Arc<Wakers> {
        &self.shared.wakers
    }

    fn snapshot_ahead(&self) -> Result<(SharedReader, Option<CatalogCheck>)> {
        let (reader, check) = self.reader_ahead()?;
        Ok((Arc::new(reader), check))
    }

    fn confirm(&self, check: CatalogCheck) -> Result<bool> {
        Ok(self.shared.catalogs.confirm(check)?.is_some())
    }

    fn begin(&self, options: &BeginOptions) -> Result<Box<dyn Writer>> {
        let mut end = None;
        loop {
            let mut session = self.session_ahead(options)?;
            match session.confirm_for_all()? {
                Confirmed::Outdated => {}
                // The collections that the transaction will use are not known yet, so it makes way for changes of any collection, for a limited time.
                Confirmed::InTheWay
                    if Instant::now() < *end.get_or_insert_with(|| Instant::now() + HOLD.min(options.wait)) =>
                {
                    sleep(ANNOUNCEMENT_PAUSE)
                }
                Confirmed::Yes | Confirmed::InTheWay => return Ok(Box::new(session)),
            }
            options.limits.check()?;
        }
    }

    fn begin_ahead(&self, options: &BeginOptions) -> Result<Box<dyn Writer>> {
        Ok(Box::new(self.session_ahead(options)?))
    }

    fn try_begin(&self, options: &BeginOptions) -> Result<Option<Box<dyn Writer>>> {
        let Some(transaction) = self.store.try_begin() else { return Ok(None) };
        let catalog = self.shared.catalogs.load(&transaction.view())?;
        Ok(Some(Box::new(self.session(transaction, (catalog, None), options))))
    }

    fn announce(&self, changes: &[Announced], wait: Duration) -> Result<()> {
        self.announced(wait, |transaction| {
            changes.iter().try_for_each(|change| catalog::announce(transaction, change))?;
            Ok(true)
        })
    }

    fn withdraw(&self, changes: &[Announced], wait: Duration) -> Result<()> {
        self.announced(wait, |transaction| {
            changes.iter().try_fold(false, |any, change| Ok(catalog::withdraw(transaction, change)? || any))
        })
    }

    fn after_commit(&self, work: &AfterCommit, wait: Duration) {
        if !work.dropped.is_empty() {
            match self.shared.capabilities.exclusive {
                // A keyspace that cannot be dropped now stays a pending drop until the next open.
                true => drop(self.drop_keyspaces(&work.dropped, wait)),
                false => self.drop_beside(),
            }
        }
        if work.trims_log {
            // The rest is deleted after a later commit.
            let _ = self.trim_log(wait);
        }
        if !work.abandoned.is_empty() {
            // An announcement that remains is withdrawn after a later commit.
            let _ = self.withdraw(&work.abandoned, wait);
        }
        self.refresh_statistics(&work.stale);
    }

    fn analyze(&self, collection: &str, wait: Duration) -> Result<()> {
        self.gather_statistics(collection, wait)
    }

    fn flush(&self) -> Result<()> {
        trace::storage("flush", || Ok(self.store.flush()?))
    }

    fn backup(&self, to: &Path, progress: BackupProgress<'_>) -> Result<()> {
        trace::storage("backup", || match self.store.backup_while(to, progress)? {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => {
                Err(Error::new(ErrorKind::Interrupted, Code::INTERRUPTED, "the backup was ended"))
            }
        })
    }

    fn compact(&self, wait: Duration) -> Result<()> {
        trace::storage("compact", || Ok(self.store.compact(wait)?))
    }

    fn compact_while(&self, wait: Duration, progress: BackupProgress<'_>) -> Result<ControlFlow<()>> {
        trace::storage("compact", || Ok(self.store.compact_while(wait, progress)?))
    }

    fn collect_garbage(&self, keep: Duration) -> Result<()> {
        trace::storage("collect garbage", || Ok(self.store.collect_garbage(keep)?))
    }

    fn size(&self, detail: SizeDetail) -> Result<Size> {
        Ok(self.store.size(detail)?)
    }

    fn check(&self, visitor: &mut dyn FnMut(Checked) -> ControlFlow<()>) -> Result<()> {
        trace::storage("check", || Ok(self.store.check(visitor)?))
    }
}
