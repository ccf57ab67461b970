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

use std::{collections::BTreeMap, sync::Arc};

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
        let parsed = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes).map_err(|_| damaged("its version"));
        let read = |key| view.get(CATALOG, key, parsed)?.unwrap_or(Ok(0));
        Ok(CatalogVersion { definitions: read(keys::VERSION)?, statistics: read(keys::STATISTICS_VERSION)? })
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

    /// Writes what `changed` names, the counter and a new version. Statistics are not written: see [`CollectionStatistics::store`].
    pub(crate) fn write<'n>(
        &self,
        transaction: &mut impl Transaction,
        changed: impl Iterator<Item = &'n str>,
    ) -> Result<()> {
        for name in changed {
            let key = keys::collection(name);
            match self.collections.get(name) {
                Some(collection) => transaction.put(CATALOG, &key, &collection.write())?,
                None => transaction.delete(CATALOG, &key)?,
            }
        }
        transaction.put(CATALOG, keys::FORMAT, &FORMAT.to_be_bytes())?;
        transaction.put(CATALOG, keys::NEXT, &self.next_keyspace.to_be_bytes())?;
        transaction.put(CATALOG, keys::VERSION, &(self.version.definitions + 1).to_be_bytes())?;
        Ok(())
    }
}

/// Names one content of the catalog. Each part grows with every commit that changes what it is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CatalogVersion {
    definitions: u64,
    statistics: u64,
}

/// The key that a writer of the collection guards and a change of its definition writes: the two conflict.
pub(crate) fn definition_key(collection: &str) -> SmallBytes {
    keys::definition(collection)
}

/// Notes, in the transaction that unlinks `keyspace`, that it is still to be dropped: dropping is an operation of its
/// own, and a crash may come between.
pub(crate) fn doom(transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
    Ok(transaction.put(CATALOG, &keys::doomed(keyspace), &[])?)
}

/// Forgets what [`doom`] noted, once the keyspace is dropped, and the statistics of a collection whose records it held.
pub(crate) fn forget_doomed(transaction: &mut impl Transaction, keyspace: Keyspace) -> Result<()> {
    transaction.delete(CATALOG, &keys::statistics(keyspace))?;
    Ok(transaction.delete(CATALOG, &keys::doomed(keyspace))?)
}

/// The keyspaces that were unlinked and not yet dropped when the database was last closed.
pub(crate) fn doomed(view: &impl View) -> Result<Vec<Keyspace>> {
    let (start, end) = keys::all_doomed();
    let mut cursor = view.cursor(CATALOG, Bounds { start: Some(&start), end: Some(&end) })?;
    let mut found = Vec::new();
    let mut more = cursor.seek(Edge::First)?;
    while more {
        found.extend(cursor.current().and_then(|(key, _)| keys::doomed_keyspace(key)));
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
