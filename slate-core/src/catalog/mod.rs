//! The catalog: the definitions and statistics of collections and indexes.
//!
//! The catalog is stored in keyspace 0 (see `docs/format.md`), so it is committed together with the data, and a
//! snapshot sees the catalog of its own commit. The last parsed catalog is cached ([`CatalogCache`]).

mod cache;
mod change_log;
mod collection;
mod index;
mod index_description;
mod keys;
mod lease;
mod namespace;
mod statistics;
mod validator;
mod view;
mod wildcard;

use std::{borrow::Cow, collections::BTreeSet, ops::ControlFlow, sync::Arc};

use im::{OrdMap, OrdSet};
use slate_query::{
    Code, held,
    raw::{Doc, SmallBytes},
};
use slate_store::{Ahead, Bounds, Cursor as _, Edge, Keyspace, Transaction, TransactionExt as _, View};

pub(crate) use cache::{CatalogCache, CatalogCheck};
pub(crate) use change_log::ChangeLogInfo;
pub(crate) use collection::CollectionInfo;
pub(crate) use index::{Held, IndexInfo, Partial, is_key_of_id};
pub use index_description::{IndexDescription, IndexState};
pub(crate) use keys::collection_of as collection_of_key;
pub(crate) use lease::{LeaseAttempt, LeasedWork};
pub(crate) use namespace::Namespace;
pub(crate) use statistics::{CollectionStatistics, KeyStatistics};
pub(crate) use validator::Validator;
pub(crate) use view::{ResolvedView, ViewInfo, not_on_view};
pub(crate) use wildcard::{ArrayPaths, Wildcard};

use crate::{
    Error, ErrorKind, Result,
    commit::{Announced, LeaseValue},
    metrics::UseTable,
    namespace::DatabaseName,
};

/// The keyspace of the catalog itself.
pub(crate) const CATALOG: Keyspace = Keyspace(0);

/// The format version that this version of Slate reads and writes.
const FORMAT: u32 = 2;

/// The format of a database whose changes are logged: earlier versions of Slate, which would write without logging, do not open it.
const FORMAT_WITH_LOG: u32 = 3;

/// Every collection and view, as of one commit or as changed by a transaction. A copy shares what is not changed, so it and a
/// change cost the logarithm of the number of collections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    /// The number of commits that have changed definitions.
    definitions: u64,
    next_keyspace: u32,
    collections: OrdMap<Box<str>, Arc<CollectionInfo>>,
    /// No view has the name of a collection.
    views: OrdMap<Box<str>, Arc<ViewInfo>>,
    /// The name of the collection whose records or index entries are in a keyspace.
    owners: OrdMap<Keyspace, Arc<str>>,
    /// The views that read a collection or view, by its name.
    readers: OrdMap<Box<str>, OrdSet<Arc<str>>>,
    /// `None` if changes are not logged.
    change_log: Option<ChangeLogInfo>,
}

impl Catalog {
    /// Reads the whole catalog. Its collections and indexes count their uses in `uses`, which has the counts of earlier versions of
    /// the catalog.
    fn read(view: &impl View, uses: &UseTable) -> Result<Self> {
        if let Some(bytes) = view.get(CATALOG, keys::FORMAT, <[u8]>::to_vec)? {
            let format = bytes.try_into().map(u32::from_be_bytes).map_err(|_| damaged("its format number"))?;
            if !matches!(format, FORMAT | FORMAT_WITH_LOG) {
                let kind = if format > FORMAT_WITH_LOG { ErrorKind::NewerVersion } else { ErrorKind::WrongFormat };
                let message =
                    format!("the database has format {format}, and this version of Slate reads {FORMAT_WITH_LOG}");
                return Err(Error::new(kind, Code::BAD_VALUE, message));
            }
        }
        let mut catalog = Self::default();
        catalog.read_counters(view)?;
        let (start, end) = keys::collections();
        let mut cursor = view.cursor(CATALOG, Bounds { start: Some(&start), end: Some(&end) })?;
        let mut more = cursor.seek(Edge::First)?;
        while more {
            if let Some((key, value)) = cursor.current() {
                let name = keys::collection_name(key).ok_or_else(|| damaged("a collection's name"))?;
                catalog.read_definition(name, Doc::new(value), uses)?;
            }
            more = cursor.step_forward()?;
        }
        drop(cursor);
        statistics::read_all(view, &mut catalog)?;
        Ok(catalog)
    }

    /// Reads the collections and views with these names again. All others must be the same in `view`.
    fn reread(&self, view: &impl View, names: &BTreeSet<Box<str>>, uses: &UseTable) -> Result<Self> {
        let mut catalog = self.clone();
        catalog.read_counters(view)?;
        // All are removed first: a rename leaves the same keyspaces under another name.
        for name in names {
            catalog.remove(name);
        }
        for name in names {
            let read = |definition: &[u8]| catalog.read_definition(name, Doc::new(definition), uses);
            view.get(CATALOG, &keys::collection(name), read)?.transpose()?;
            if let Some(records) = catalog.collection(name).map(|collection| collection.records) {
                let read =
                    |stored: &[u8]| catalog.set_statistics(records, CollectionStatistics::read(Doc::new(stored)));
                view.get(CATALOG, &keys::statistics(records), read)?;
            }
        }
        Ok(catalog)
    }

    fn read_counters(&mut self, view: &impl View) -> Result<()> {
        self.definitions = match view.get(CATALOG, keys::VERSION, <[u8]>::to_vec)? {
            Some(bytes) => bytes.try_into().map(u64::from_be_bytes).map_err(|_| damaged("its version"))?,
            None => 0,
        };
        self.next_keyspace = match view.get(CATALOG, keys::NEXT, <[u8]>::to_vec)? {
            Some(bytes) => bytes.try_into().map(u32::from_be_bytes).map_err(|_| damaged("its keyspace counter"))?,
            None => 1,
        };
        self.change_log =
            view.get(CATALOG, keys::CHANGE_LOG, |stored| ChangeLogInfo::read(Doc::new(stored)))?.flatten();
        Ok(())
    }

    fn read_definition(&mut self, name: &str, definition: Doc<'_>, uses: &UseTable) -> Result<()> {
        match ViewInfo::read(name, definition)? {
            Some(view) => self.put_view(view),
            None => {
                // The memory of validators and partial indexes does not count towards the limit of a call.
                let mut collection = held::uncounted(|| CollectionInfo::read(name, definition))?;
                collection.count_in(uses);
                self.put(collection);
            }
        }
        Ok(())
    }

    /// Sets the statistics of the collection with these records, if there is one.
    fn set_statistics(&mut self, records: Keyspace, statistics: Option<CollectionStatistics>) {
        if let Some(collection) = self.owners.get(&records).and_then(|name| self.collections.get_mut(&**name)) {
            Arc::make_mut(collection).statistics = statistics.map(Arc::new);
        }
    }

    /// Returns the collection whose records or index entries are in the keyspace.
    pub(crate) fn owner(&self, keyspace: Keyspace) -> Option<&Arc<CollectionInfo>> {
        self.collection(self.owners.get(&keyspace)?)
    }

    pub(crate) fn collection(&self, name: &str) -> Option<&Arc<CollectionInfo>> {
        self.collections.get(name)
    }

    /// Returns the collection, or an empty one if it does not exist.
    pub(crate) fn collection_or_empty(&self, name: &str) -> Cow<'_, CollectionInfo> {
        let empty = || Cow::Owned(CollectionInfo::absent(name));
        self.collection(name).map_or_else(empty, |collection| Cow::Borrowed(&**collection))
    }

    pub(crate) fn collections(&self) -> impl Iterator<Item = &Arc<CollectionInfo>> {
        self.collections.values()
    }

    pub(crate) fn view(&self, name: &str) -> Option<&Arc<ViewInfo>> {
        self.views.get(name)
    }

    pub(crate) fn views(&self) -> impl Iterator<Item = &Arc<ViewInfo>> {
        self.views.values()
    }

    pub(crate) fn has_views(&self) -> bool {
        !self.views.is_empty()
    }

    /// Returns the names of all collections and views, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.collections.keys().chain(self.views.keys()).map(ToString::to_string).collect();
        names.sort();
        names
    }

    /// Returns the names of the collections and views of a database, sorted.
    pub(crate) fn names_in(&self, database: &DatabaseName) -> Vec<String> {
        let names = self.names();
        names.iter().filter_map(|name| database.own(name)).map(str::to_owned).collect()
    }

    /// Returns the log of changes; `None` if they are not logged.
    pub(crate) fn change_log(&self) -> Option<&ChangeLogInfo> {
        self.change_log.as_ref()
    }

    /// Sets the log of changes; `None` ends logging.
    pub(crate) fn set_change_log(&mut self, log: Option<ChangeLogInfo>) {
        self.change_log = log;
    }

    /// Returns a keyspace whose number was never used before. Fails once all numbers have been used.
    pub(crate) fn allocate(&mut self) -> Result<Keyspace> {
        let keyspace = Keyspace(self.next_keyspace);
        self.next_keyspace = self
            .next_keyspace
            .checked_add(1)
            .ok_or_else(|| Error::new(ErrorKind::Full, Code::INTERNAL_ERROR, "every keyspace number has been used"))?;
        Ok(keyspace)
    }

    pub(crate) fn put(&mut self, collection: CollectionInfo) {
        self.remove(&collection.name);
        self.owners.extend(collection.keyspaces().map(|keyspace| (keyspace, Arc::clone(&collection.name))));
        self.collections.insert((&*collection.name).into(), Arc::new(collection));
    }

    pub(crate) fn put_view(&mut self, view: ViewInfo) {
        self.remove(&view.name);
        for read in view.reads() {
            self.readers.entry(read.into()).or_default().insert(Arc::clone(&view.name));
        }
        self.views.insert((&*view.name).into(), Arc::new(view));
    }

    /// Removes the collection or view.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(view) = self.views.remove(name) {
            for read in view.reads() {
                self.readers.entry(read.into()).or_default().remove(name);
            }
        }
        if let Some(collection) = self.collections.remove(name) {
            collection.keyspaces().for_each(|keyspace| drop(self.owners.remove(&keyspace)));
        }
    }

    /// Writes the changed collections, the log of changes if `log` says that it was redefined, and new versions. Statistics are not written: see
    /// [`CollectionStatistics::store`].
    pub(crate) fn write<'n>(
        &self,
        transaction: &mut impl Transaction,
        changed: impl Iterator<Item = (&'n str, Change)>,
        log: Option<Change>,
    ) -> Result<()> {
        let mut redefined = log.is_some();
        if redefined {
            match &self.change_log {
                Some(log) => transaction.put(CATALOG, keys::CHANGE_LOG, &log.write())?,
                None => transaction.delete(CATALOG, keys::CHANGE_LOG)?,
            }
        }
        for (name, change) in changed {
            let (key, version) = (keys::collection(name), keys::properties_version(name));
            match (self.collections.get(name), self.views.get(name)) {
                (Some(collection), _) => transaction.put(CATALOG, &key, &collection.write())?,
                (None, Some(view)) => transaction.put(CATALOG, &key, &view.write())?,
                (None, None) => {
                    transaction.delete(CATALOG, &key)?;
                    transaction.delete(CATALOG, &version)?;
                }
            }
            match change {
                Change::Definition => redefined = true,
                Change::Properties => {
                    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_be_bytes);
                    let last = transaction.view().get(CATALOG, &version, number)?.unwrap_or_default();
                    transaction.put(CATALOG, &version, &last.saturating_add(1).to_be_bytes())?;
                }
            }
        }
        if redefined {
            let format = if self.change_log.is_some() { FORMAT_WITH_LOG } else { FORMAT };
            transaction.put(CATALOG, keys::FORMAT, &format.to_be_bytes())?;
            transaction.put(CATALOG, keys::NEXT, &self.next_keyspace.to_be_bytes())?;
            transaction.put(CATALOG, keys::VERSION, &(self.definitions + 1).to_be_bytes())?;
        }
        Ok(())
    }
}

/// Which part of a collection's catalog entry a commit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// Properties of its indexes: multikey, truncated, ready. Conflicts only with changes of the same collection.
    Properties,
    /// The definition. Conflicts with every other change of a definition.
    Definition,
}

/// The keyspace and the key of the counter of changes of definitions.
pub(crate) const DEFINITIONS_VERSION: (Keyspace, &[u8]) = (CATALOG, keys::VERSION);

/// The version of the catalog's content, by which a process notices changes that others make. Each part grows with every commit
/// that changes its part of the catalog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CatalogVersion {
    definitions: u64,
    /// The sum of the counters of all collections. Comparable only between equal definitions.
    properties: u64,
    statistics: u64,
}

impl CatalogVersion {
    fn read(view: &impl View) -> Result<Self> {
        let mut version = Self::default();
        let invalid = view.scan(CATALOG, Self::bounds(), |key, value| version.add(key, value))?;
        if invalid.is_some() { Err(damaged("its version")) } else { Ok(version) }
    }

    /// Begins to read the version; `None` on a store where that gains nothing.
    fn read_ahead(view: &impl View) -> Result<Option<Ahead>> {
        Ok(view.scan_ahead(CATALOG, Self::bounds())?)
    }

    /// Waits for the version, and the changes that are announced.
    fn wait(ahead: Ahead) -> Result<(Self, Vec<Announced>)> {
        let (mut version, mut announced) = (Self::default(), Vec::new());
        for (key, value) in ahead.wait()? {
            if version.add(&key, &value).is_break() {
                return Err(damaged("its version"));
            }
            if let (Some(collection), Ok(id)) = (keys::announced(&key), (&*value).try_into()) {
                announced.push(Announced { collection: collection.into(), id: u64::from_be_bytes(id) });
            }
        }
        Ok((version, announced))
    }

    /// Returns whether no definition has changed since this version: whether `stored`, the value of [`DEFINITIONS_VERSION`], is still the same.
    pub(crate) fn has_definitions(self, stored: Option<&[u8]>) -> bool {
        match stored {
            None => self.definitions == 0,
            Some(stored) => stored.try_into().is_ok_and(|stored| u64::from_be_bytes(stored) == self.definitions),
        }
    }

    fn bounds() -> Bounds<'static> {
        let (start, end) = keys::versions();
        Bounds { start: Some(start), end: Some(end) }
    }

    /// Adds a stored counter. Breaks if it is damaged.
    fn add(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let Ok(number) = value.try_into().map(u64::from_be_bytes) else { return ControlFlow::Break(()) };
        match key {
            keys::VERSION => self.definitions = number,
            keys::STATISTICS_VERSION => self.statistics = number,
            key if keys::announced(key).is_some() => {}
            _ => self.properties = self.properties.saturating_add(number),
        }
        ControlFlow::Continue(())
    }
}

/// Returns the key that a writer of the collection guards and a change of its definition writes: the two conflict.
pub(crate) fn definition_key(collection: &str) -> SmallBytes {
    keys::definition(collection)
}

/// Announces that the collection's definition is about to change, in place of an earlier announcement.
pub(crate) fn announce(transaction: &mut impl Transaction, change: &Announced) -> Result<()> {
    Ok(transaction.put(CATALOG, &keys::announcement(&change.collection), &change.id.to_be_bytes())?)
}

/// Withdraws an announcement, unless another one has replaced it. Returns whether this writes anything.
pub(crate) fn withdraw(transaction: &mut impl Transaction, change: &Announced) -> Result<bool> {
    let key = keys::announcement(&change.collection);
    let is_it = transaction.view().get(CATALOG, &key, |id| *id == change.id.to_be_bytes())?;
    if is_it != Some(true) {
        return Ok(false);
    }
    transaction.delete(CATALOG, &key)?;
    Ok(true)
}

/// Returns the version and the number of the last event that was deleted from the log; `None` if none was.
pub(crate) fn trimmed_changes(view: &impl View, log: &ChangeLogInfo) -> Result<Option<(u64, u32)>> {
    let stored = view.get(CATALOG, &keys::trimmed(log.keyspace), |stored| {
        let (version, event) = stored.split_first_chunk()?;
        Some((u64::from_be_bytes(*version), u32::from_be_bytes(event.try_into().ok()?)))
    })?;
    stored.map(|stored| stored.ok_or_else(|| damaged("how far the log of changes is trimmed"))).transpose()
}

/// Records up to which event the log is deleted, in the transaction that deletes the events.
pub(crate) fn set_trimmed_changes(
    transaction: &mut impl Transaction,
    log: &ChangeLogInfo,
    (version, event): (u64, u32),
) -> Result<()> {
    let stored = [version.to_be_bytes().as_slice(), &event.to_be_bytes()].concat();
    Ok(transaction.put(CATALOG, &keys::trimmed(log.keyspace), &stored)?)
}

/// Records, in the transaction that unlinks `keyspace`, that it still has to be dropped. Dropping is a separate
/// operation, and the process may end before it. Where other processes write to the database, `lease` is the lease of this operation.
pub(crate) fn add_pending_drop(
    transaction: &mut impl Transaction,
    keyspace: Keyspace,
    lease: Option<LeaseValue>,
) -> Result<()> {
    let lease = lease.as_ref().map_or(&[][..], LeaseValue::as_slice);
    Ok(transaction.put(CATALOG, &keys::pending_drop(keyspace), lease)?)
}

/// Removes a pending drop after the keyspace was dropped, and the statistics of the collection whose records it contained.
pub(crate) fn remove_pending_drop(transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
    transaction.delete(CATALOG, &keys::statistics(keyspace))?;
    transaction.delete(CATALOG, &keys::statistics_lease(keyspace))?;
    transaction.delete(CATALOG, &keys::trimmed(keyspace))?;
    Ok(transaction.delete(CATALOG, &keys::pending_drop(keyspace))?)
}

/// Returns the keyspaces that were unlinked and not dropped before the database was last closed.
pub(crate) fn pending_drops(view: &impl View) -> Result<Vec<Keyspace>> {
    let (start, end) = keys::all_pending_drops();
    let mut cursor = view.cursor(CATALOG, Bounds { start: Some(&start), end: Some(&end) })?;
    let mut found = Vec::new();
    let mut more = cursor.seek(Edge::First)?;
    while more {
        found.extend(cursor.current().and_then(|(key, _)| keys::pending_drop_keyspace(key)));
        more = cursor.step_forward()?;
    }
    Ok(found)
}

/// The progress of an index build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BuildPosition {
    /// The number of documents that have been read.
    pub(crate) read: u64,
    /// The record key of the last of them; empty before the first.
    pub(crate) after: Vec<u8>,
}

impl BuildPosition {
    /// Reads the position of the build of the index in `keyspace`; the start if none is stored.
    pub(crate) fn load(view: &impl View, keyspace: Keyspace) -> Result<Self> {
        let Some(bytes) = view.get(CATALOG, &keys::build(keyspace), <[u8]>::to_vec)? else {
            return Ok(Self::default());
        };
        let (read, after) = bytes.split_first_chunk().ok_or_else(|| damaged("the position of an index build"))?;
        Ok(Self { read: u64::from_be_bytes(*read), after: after.to_vec() })
    }

    /// Stores the position under its own key, because it changes with every round, and a new version of the catalog
    /// would make every reader parse it and conflict with other changes.
    pub(crate) fn store(&self, transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
        let value = [&self.read.to_be_bytes()[..], &self.after].concat();
        Ok(transaction.put(CATALOG, &keys::build(keyspace), &value)?)
    }

    /// Deletes the position when the build ends.
    pub(crate) fn forget(transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
        Ok(transaction.delete(CATALOG, &keys::build(keyspace))?)
    }
}

fn damaged(what: &str) -> Error {
    Error::corrupt(format!("the catalog is damaged: {what}"))
}
