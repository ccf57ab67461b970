use std::{collections::BTreeMap, fmt, ops::ControlFlow};

use bson::DateTime;
use slate_query::raw::Doc;
use slate_store::{Bounds, Keyspace, OldestSnapshot, View};

use crate::{Result, StorageSize, catalog::CollectionInfo, changes::LogCounts, interrupt::Interrupt};

/// The sizes of a collection and its indexes; see [`ReadCollection::stats`](crate::ReadCollection::stats).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CollectionStats {
    /// Number of documents.
    pub documents: u64,
    /// Bytes of the documents, their field tables and their keys, without the store's overhead.
    pub bytes: u64,
    /// Bytes of the documents alone, as BSON.
    pub document_bytes: u64,
    /// The indexes in the order of their declaration; indexes that are being built come last.
    pub indexes: Vec<IndexStats>,
}

/// The sizes of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexStats {
    /// Name of the index.
    pub name: String,
    /// Number of entries: one for each distinct combination of indexed values of a document.
    pub entries: u64,
    /// Bytes of the entries, without the store's overhead.
    pub bytes: u64,
}

/// The sizes of a database; see [`Database::stats`](crate::Database::stats). Its `Display` is a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatabaseStats {
    /// The collections by name.
    pub collections: BTreeMap<String, CollectionStats>,
    /// Number of views.
    pub views: usize,
    /// The space that the store uses.
    pub storage: StorageSize,
    /// The oldest commit that an open snapshot, cursor or transaction of this process reads. `None` if all read the last commit.
    pub oldest_snapshot: Option<OldestSnapshot>,
    /// The log of changes. `None` if changes are not logged.
    pub changes: Option<ChangeLogStats>,
}

/// The size of the log of changes; see [`Database::enable_changes`](crate::Database::enable_changes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeLogStats {
    /// Bytes of its keys and values.
    pub bytes: u64,
    /// When the oldest commit in it was made; `None` if it is empty.
    pub oldest: Option<DateTime>,
    /// When the last commit in it was made; `None` if it is empty.
    pub newest: Option<DateTime>,
}

impl From<LogCounts> for ChangeLogStats {
    fn from(counts: LogCounts) -> Self {
        let time = |millis: Option<i64>| millis.map(DateTime::from_millis);
        Self { bytes: counts.bytes, oldest: time(counts.first), newest: time(counts.last) }
    }
}

impl CollectionStats {
    /// Returns the bytes of the field tables and keys of the documents.
    pub fn record_overhead_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.document_bytes)
    }
}

impl DatabaseStats {
    /// Returns the bytes of all documents, as BSON.
    pub fn document_bytes(&self) -> u64 {
        sum(self.collections.values().map(|collection| collection.document_bytes))
    }

    /// Returns the bytes of all field tables and keys of documents.
    pub fn record_overhead_bytes(&self) -> u64 {
        sum(self.collections.values().map(CollectionStats::record_overhead_bytes))
    }

    /// Returns the bytes of all index entries.
    pub fn index_bytes(&self) -> u64 {
        sum(self.collections.values().flat_map(|collection| &collection.indexes).map(|index| index.bytes))
    }

    /// Returns the bytes of the files that are neither data nor free: unused parts of pages, and the store's own
    /// structures. `None` if the store does not know the size of its files or how many bytes are free. 0 if the files
    /// are smaller than the data, because the store compresses.
    pub fn storage_overhead_bytes(&self) -> Option<u64> {
        let log = self.changes.map_or(0, |log| log.bytes);
        let data = sum([self.document_bytes(), self.record_overhead_bytes(), self.index_bytes(), log]);
        Some(self.storage.on_disk?.saturating_sub(self.storage.free?).saturating_sub(data))
    }
}

fn sum(bytes: impl IntoIterator<Item = u64>) -> u64 {
    bytes.into_iter().fold(0, u64::saturating_add)
}

impl fmt::Display for DatabaseStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |what: &str, bytes: u64| writeln!(f, "{bytes:>16}  {what}");
        for (name, collection) in &self.collections {
            row(&format!("{name}: {} documents", collection.documents), collection.document_bytes)?;
            row(&format!("{name}: field tables and keys"), collection.record_overhead_bytes())?;
            for index in &collection.indexes {
                row(&format!("{name}: index {}, {} entries", index.name, index.entries), index.bytes)?;
            }
        }
        let storage = [
            ("the log of changes", self.changes.map(|log| log.bytes)),
            ("free in the files", self.storage.free),
            ("the store's overhead", self.storage_overhead_bytes()),
            ("the files", self.storage.on_disk),
            ("main memory", self.storage.in_memory),
            ("held by the oldest snapshot", self.oldest_snapshot.and_then(|oldest| oldest.held_bytes)),
        ];
        storage.into_iter().try_for_each(|(what, bytes)| bytes.map_or(Ok(()), |bytes| row(what, bytes)))
    }
}

pub(crate) fn stats<V: View>(view: &V, collection: &CollectionInfo, interrupt: &Interrupt) -> Result<CollectionStats> {
    let interrupt = &mut interrupt.clone();
    interrupt.check()?;
    let indexes = collection.maintained().map(|index| {
        let (mut entries, mut bytes) = (0, 0);
        scan(view, index.keyspace, interrupt, |key, value| {
            entries += 1;
            bytes += length(key) + length(value);
        })?;
        Ok(IndexStats { name: index.name.to_string(), entries, bytes })
    });
    let mut stats = CollectionStats { indexes: indexes.collect::<Result<_>>()?, ..CollectionStats::default() };
    scan(view, collection.records, interrupt, |key, stored| {
        stats.documents += 1;
        stats.bytes += length(key) + length(stored);
        stats.document_bytes += length(Doc::stored(stored).bytes());
    })?;
    Ok(stats)
}

fn scan<V: View>(
    view: &V,
    keyspace: Keyspace,
    interrupt: &mut Interrupt,
    mut visitor: impl FnMut(&[u8], &[u8]),
) -> Result<()> {
    let interrupted = view.scan(keyspace, Bounds::ALL, |key, value| {
        visitor(key, value);
        interrupt.tick().map_or_else(ControlFlow::Break, ControlFlow::Continue)
    })?;
    interrupted.map_or(Ok(()), Err)
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}
