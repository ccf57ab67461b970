//! The catalog: the definitions and statistics of collections and indexes.
//!
//! It is stored in keyspace 0 (see `docs/format.md`), so that it commits with the data it describes and a snapshot sees the
//! catalog of its own commit. The last parsed catalog is cached ([`CatalogCache`]).

mod cache;
mod collection;
mod index;
mod keys;
mod staleness;
mod statistics;

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc};

use slate_query::{
    Code,
    raw::{Doc, SmallBytes},
};
use slate_store::{Bounds, Cursor as _, Edge, Keyspace, Transaction, TransactionExt as _, View};

pub(crate) use cache::CatalogCache;
pub(crate) use collection::CollectionInfo;
pub(crate) use index::{Held, IndexInfo, Partial};
pub(crate) use staleness::StatisticsStaleness;
pub(crate) use statistics::{CollectionStatistics, KeyStatistics};

use crate::{Error, ErrorKind, Result};

/// The keyspace of the catalog itself.
pub(crate) const CATALOG: Keyspace = Keyspace(0);

/// The layout that this version reads and writes.
const FORMAT: u32 = 2;

/// Every collection, as of one commit or as a transaction has it so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    version: CatalogVersion,
    next_keyspace: u32,
    collections: BTreeMap<Box<str>, Arc<CollectionInfo>>,
}

impl Catalog {
    /// Reads the version alone.
    fn read_version(view: &impl View) -> Result<CatalogVersion> {
        let (start, end) = keys::versions();
        let mut version = CatalogVersion::default();
        let invalid = view.scan(CATALOG, Bounds { start: Some(start), end: Some(end) }, |key, value| {
            let Ok(number) = value.try_into().map(u64::from_be_bytes) else { return ControlFlow::Break(()) };
            match key {
                keys::VERSION => version.definitions = number,
                keys::STATISTICS_VERSION => version.statistics = number,
                _ => version.properties = version.properties.saturating_add(number),
            }
            ControlFlow::Continue(())
        })?;
        if invalid.is_some() { Err(damaged("its version")) } else { Ok(version) }
    }

    fn read(view: &impl View, version: CatalogVersion) -> Result<Self> {
        if let Some(bytes) = view.get(CATALOG, keys::FORMAT, <[u8]>::to_vec)? {
            let format = bytes.try_into().map(u32::from_be_bytes).map_err(|_| damaged("its format number"))?;
            if format != FORMAT {
                let kind = if format > FORMAT { ErrorKind::NewerVersion } else { ErrorKind::WrongFormat };
                let message = format!("the database has format {format}, and this version of Slate reads {FORMAT}");
                return Err(Error::new(kind, Code::BAD_VALUE, message));
            }
        }
        let next_keyspace = match view.get(CATALOG, keys::NEXT, <[u8]>::to_vec)? {
            Some(bytes) => bytes.try_into().map(u32::from_be_bytes).map_err(|_| damaged("its keyspace counter"))?,
            None => 1,
        };
        let mut collections = BTreeMap::new();
        let (start, end) = keys::collections();
        let mut cursor = view.cursor(CATALOG, Bounds { start: Some(&start), end: Some(&end) })?;
        let mut more = cursor.seek(Edge::First)?;
        while more {
            if let Some((key, value)) = cursor.current() {
                let name = keys::collection_name(key).ok_or_else(|| damaged("a collection's name"))?;
                collections.insert(name.into(), Arc::new(CollectionInfo::read(name, Doc::new(value))?));
            }
            more = cursor.step_forward()?;
        }
        drop(cursor);
        statistics::read_all(view, &mut collections)?;
        Ok(Self { version, next_keyspace, collections })
    }

    pub(crate) fn collection(&self, name: &str) -> Option<&Arc<CollectionInfo>> {
        self.collections.get(name)
    }

    pub(crate) fn collections(&self) -> impl Iterator<Item = &Arc<CollectionInfo>> {
        self.collections.values()
    }

    /// A keyspace that was never used before.
    pub(crate) fn allocate(&mut self) -> Result<Keyspace> {
        let keyspace = Keyspace(self.next_keyspace);
        self.next_keyspace = self
            .next_keyspace
            .checked_add(1)
            .ok_or_else(|| Error::new(ErrorKind::Full, Code::INTERNAL_ERROR, "every keyspace number has been used"))?;
        Ok(keyspace)
    }

    pub(crate) fn put(&mut self, collection: CollectionInfo) {
        self.collections.insert((&*collection.name).into(), Arc::new(collection));
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.collections.remove(name);
    }

    /// Writes the changed collections, and new versions. Statistics are not written: see [`CollectionStatistics::store`].
    pub(crate) fn write<'n>(
        &self,
        transaction: &mut impl Transaction,
        changed: impl Iterator<Item = (&'n str, Change)>,
    ) -> Result<()> {
        let mut redefined = false;
        for (name, change) in changed {
            let (key, version) = (keys::collection(name), keys::properties_version(name));
            match self.collections.get(name) {
                Some(collection) => transaction.put(CATALOG, &key, &collection.write())?,
                None => {
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
            transaction.put(CATALOG, keys::FORMAT, &FORMAT.to_be_bytes())?;
            transaction.put(CATALOG, keys::NEXT, &self.next_keyspace.to_be_bytes())?;
            transaction.put(CATALOG, keys::VERSION, &(self.version.definitions + 1).to_be_bytes())?;
        }
        Ok(())
    }
}

/// How the catalog's entry of a collection changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    /// Properties of its indexes: multikey, truncated, ready. Conflicts with nothing but changes of the same collection.
    Properties,
    /// Its definition. Conflicts with every other change of a definition.
    Definition,
}

/// Names one content of the catalog. Each part grows with every commit that changes what it is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CatalogVersion {
    definitions: u64,
    /// The sum over all collections. It only grows while the definitions stay the same.
    properties: u64,
    statistics: u64,
}

/// The key that a writer of the collection guards and a change of its definition writes: the two conflict.
pub(crate) fn definition_key(collection: &str) -> SmallBytes {
    keys::definition(collection)
}

/// Records, in the transaction that unlinks `keyspace`, that it still has to be dropped: dropping is an operation of its own,
/// and the process may end before it.
pub(crate) fn add_pending_drop(transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
    Ok(transaction.put(CATALOG, &keys::pending_drop(keyspace), &[])?)
}

/// Removes a pending drop after the keyspace was dropped, and the statistics of the collection whose records it contained.
pub(crate) fn remove_pending_drop(transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
    transaction.delete(CATALOG, &keys::statistics(keyspace))?;
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

/// How far the building of an index has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BuildPosition {
    /// How many documents have been read.
    pub(crate) read: u64,
    /// The key of the last of them; empty before the first.
    pub(crate) after: Vec<u8>,
}

impl BuildPosition {
    /// That of the index whose entries lie in `keyspace`.
    pub(crate) fn load(view: &impl View, keyspace: Keyspace) -> Result<Self> {
        let Some(bytes) = view.get(CATALOG, &keys::build(keyspace), <[u8]>::to_vec)? else {
            return Ok(Self::default());
        };
        let (read, after) = bytes.split_first_chunk().ok_or_else(|| damaged("the position of an index build"))?;
        Ok(Self { read: u64::from_be_bytes(*read), after: after.to_vec() })
    }

    /// Notes it beside the collections: it changes with every round, and a new version of the catalog would be parsed by
    /// every reader and conflict with others.
    pub(crate) fn store(&self, transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
        let value = [&self.read.to_be_bytes()[..], &self.after].concat();
        Ok(transaction.put(CATALOG, &keys::build(keyspace), &value)?)
    }

    /// Forgets it, with the build.
    pub(crate) fn forget(transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
        Ok(transaction.delete(CATALOG, &keys::build(keyspace))?)
    }
}

fn damaged(what: &str) -> Error {
    Error::corrupt(format!("the catalog is damaged: {what}"))
}
