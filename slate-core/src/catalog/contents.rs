use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use im::{OrdMap, OrdSet};
use slate_query::{Code, held, raw::Doc};
use slate_store::{Bounds, Cursor as _, Edge, Keyspace, Transaction, TransactionExt as _, View};

use super::{CATALOG, ChangeLogInfo, CollectionInfo, CollectionStatistics, ViewInfo, damaged, keys, statistics};
use crate::{Error, ErrorKind, Result, metrics::UseTable, namespace::DatabaseName};

/// The format of a database whose changes are not logged.
const FORMAT: u32 = 2;

/// The format of a database whose changes are logged: earlier versions of Slate, which would write without logging, do not open it.
const FORMAT_WITH_LOG: u32 = 3;

/// Every collection and view, as of one commit or as changed by a transaction. A copy shares what is not changed, so it and a
/// change cost the logarithm of the number of collections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    /// The number of commits that have changed definitions or the settings of the log of changes.
    pub(super) definitions: u64,
    next_keyspace: u32,
    pub(super) collections: OrdMap<Box<str>, Arc<CollectionInfo>>,
    /// No view has the name of a collection.
    pub(super) views: OrdMap<Box<str>, Arc<ViewInfo>>,
    /// The name of the collection whose records or index entries are in a keyspace.
    owners: OrdMap<Keyspace, Arc<str>>,
    /// The views that read a collection or view, by its name.
    pub(super) readers: OrdMap<Box<str>, OrdSet<Arc<str>>>,
    /// `None` if changes are not logged.
    change_log: Option<ChangeLogInfo>,
}

impl Catalog {
    /// Reads the whole catalog. Its collections and indexes count their uses in `uses`, which has the counts of earlier versions of
    /// the catalog.
    pub(super) fn read(view: &impl View, uses: &UseTable) -> Result<Self> {
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
    pub(super) fn reread(&self, view: &impl View, names: &BTreeSet<Box<str>>, uses: &UseTable) -> Result<Self> {
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
    pub(super) fn set_statistics(&mut self, records: Keyspace, statistics: Option<CollectionStatistics>) {
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

    /// Writes the changed collections and views, the settings of the log of changes unless `log` is `None`, and new versions. Statistics are not
    /// written: see [`CollectionStatistics::store`].
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
