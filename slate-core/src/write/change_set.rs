use slate_query::{
    raw::{Doc, SmallBytes, store},
    update::EmptyTimestamps,
};
use slate_store::{Capabilities, Keyspace};

use super::{
    call_events::CallEvents,
    entries::{Entries, Write},
    prepare::{EntryMaker, id, prepare},
};
use crate::{
    Error, Result,
    call_context::{CallContext, DocumentValidation},
    catalog::{CollectionInfo, IndexInfo},
    changes::EventBuffer,
    entry::MAX_ENTRY_KEY,
    spill::{Memory, Sorter},
};

/// All changes that a call makes to one collection: its records and the entries of its indexes.
///
/// They are collected before the first of them is applied, so that a rejected call leaves the transaction unchanged and
/// uniqueness is checked for the final state. Beyond the memory limit they are moved to temporary files.
pub(super) struct ChangeSet {
    /// The writes of records, at most one of each, except in a call that replaces all documents.
    pub(super) records: Entries,
    /// The writes of each index, by its position in the collection.
    pub(super) indexes: Vec<Entries>,
    /// Writes beyond the memory limit.
    spilled: Option<Box<Sorter>>,
    /// Whether `spilled` contains all writes, sorted.
    is_finished: bool,
    memory: Memory,
    capabilities: Capabilities,
    validation: DocumentValidation,
    /// Whether empty timestamps in new documents get the current time.
    pub(super) empty_timestamps: EmptyTimestamps,
    maker: EntryMaker,
    /// Reused buffers: the entries of a record before and after its change.
    difference: (Entries, Entries),
    /// Keys that were read and are not written: a transaction that writes one of them conflicts.
    pub(super) guards: Vec<(Keyspace, SmallBytes)>,
    /// Number of records by which the collection grows.
    pub(super) growth: i64,
    /// What is logged of the changes; `None` if they are not logged.
    log: Option<Box<CallEvents>>,
    /// Bytes of the keys and values in `spilled`.
    spilled_bytes: usize,
    /// Number of the keys in `spilled`.
    spilled_keys: usize,
}

/// Where a block of writes goes. Indexes are written before records. redb puts the pages of a commit into the lowest free
/// places of its file: the indexes then fill the places of their replaced pages, and the records, which are most of the new
/// pages, follow next to each other. Scans read longer parts of the file at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockPlace {
    /// The index at this position in the collection.
    Index(usize),
    /// The log of changes. The keys are the numbers of the events in the call.
    Log,
    Records,
}

/// Size in bytes above which changes are not copied into the store's transaction, but written by the commit.
const LARGE: usize = 256 << 10;

/// Bytes of spilled writes that are read together.
const BLOCK_BYTES: usize = 4 << 20;

impl ChangeSet {
    pub(super) fn new(
        collection: &CollectionInfo,
        memory: Memory,
        capabilities: Capabilities,
        validation: DocumentValidation,
    ) -> Self {
        Self {
            records: Entries::default(),
            indexes: collection.maintained().map(|_| Entries::default()).collect(),
            spilled: None,
            is_finished: false,
            // Half is for the writes in the buffers, the other half for the writes that are being sorted.
            memory: memory.shared_by(2),
            capabilities,
            validation,
            empty_timestamps: EmptyTimestamps::default(),
            maker: EntryMaker::default(),
            difference: Default::default(),
            guards: Vec::new(),
            growth: 0,
            log: None,
            spilled_bytes: 0,
            spilled_keys: 0,
        }
    }

    /// Sets whether the changes are logged.
    pub(super) fn logged(mut self, collection: &CollectionInfo, is_logged: bool) -> Self {
        self.log = is_logged.then(|| Box::new(CallEvents::new(collection)));
        self
    }

    /// Logs changed documents as replaced. By default they are logged as updated, if the difference can be described.
    pub(super) fn log_replacements(&mut self) {
        if let Some(log) = &mut self.log {
            log.replaces = true;
        }
    }

    /// Removes and returns the events in memory. Spilled events are among the spilled writes.
    pub(super) fn take_events(&mut self) -> EventBuffer {
        self.log.as_mut().map(|log| std::mem::take(&mut log.events)).unwrap_or_default()
    }

    /// Reserves memory for new documents of this size in total. Field tables add about an eighth; keys and generated `_id`s
    /// a few bytes each.
    pub(super) fn reserve(&mut self, documents: usize, bytes: usize) {
        const KEY_AND_ID: usize = 48;
        let bytes = bytes.saturating_add(bytes / 8).saturating_add(documents.saturating_mul(KEY_AND_ID));
        self.records.reserve(documents, bytes);
        self.indexes.iter_mut().for_each(|entries| entries.reserve(documents, documents.saturating_mul(KEY_AND_ID)));
    }

    /// Adds a new document, with an `_id` if it has none. An error may leave writes of the document in the change set.
    pub(super) fn insert(&mut self, collection: &CollectionInfo, document: &bson::RawDocument) -> Result<()> {
        let row = self.records.len();
        self.records.try_write(|out| prepare(document, self.empty_timestamps, out))?;
        self.add_entries(collection, row, None, |_, _| true)
    }

    /// Adds the new document of a record in place of the old one, and the changes of its entries in the wanted indexes.
    pub(super) fn replace(
        &mut self,
        collection: &CollectionInfo,
        key: &[u8],
        old: Doc<'_>,
        new: Doc<'_>,
        wanted: impl Fn(&IndexInfo, Doc<'_>) -> bool,
    ) -> Result<()> {
        let row = self.records.len();
        self.write_record(key, new);
        self.add_entries(collection, row, Some(old), wanted)
    }

    /// Adds a record without its entries; [`add_entries`](Self::add_entries) follows.
    pub(super) fn write_record(&mut self, key: &[u8], document: Doc<'_>) {
        self.records.write(|out| {
            out.extend_from_slice(key);
            store(document, out);
            (key.len(), ())
        });
    }

    /// Returns the new document of a record, by the row of its write.
    pub(super) fn document(&self, row: usize) -> Option<Doc<'_>> {
        self.records.get(row).map(|(_, stored)| Doc::stored(stored))
    }

    /// Adds the deletes of a record and of its index entries, and logs them.
    pub(super) fn delete(&mut self, collection: &CollectionInfo, key: &[u8], old: Doc<'_>) -> Result<()> {
        if let Some(log) = &mut self.log {
            log.inserted(&self.records, self.records.len());
            check_limit(self.capabilities.max_value, log.deleted(old), LOGGED, collection, old)?;
        }
        self.records.push_delete(key, &[]);
        for (at, index) in collection.maintained().enumerate() {
            let Self { indexes, maker, difference: (before, _), .. } = self;
            maker.document(key, old).of_index(collection, at, before)?;
            let owner = owner(collection, at, index, key);
            let Some(entries) = indexes.get_mut(at) else { continue };
            before.iter().for_each(|(entry, _)| entries.push_delete(entry, owner));
        }
        Ok(())
    }

    /// Checks the record in this row against the store's limits and the validator, logs it if it replaces an old document, and adds the changes of
    /// its index entries: all entries of a new document, or those that differ from the old document's in the wanted indexes.
    pub(super) fn add_entries(
        &mut self,
        collection: &CollectionInfo,
        row: usize,
        old: Option<Doc<'_>>,
        wanted: impl Fn(&IndexInfo, Doc<'_>) -> bool,
    ) -> Result<()> {
        let Self { records, indexes, maker, difference: (before, after), capabilities, validation, log, .. } = self;
        let Some((key, stored)) = records.get(row) else { return Ok(()) };
        let new = Doc::stored(stored);
        check_limit(capabilities.max_key, key.len(), "key", collection, new)?;
        check_limit(capabilities.max_value, stored.len(), "record", collection, new)?;
        if let (Some(validator), DocumentValidation::Enforced) = (&collection.validator, *validation) {
            validator.check(&collection.name, old, new)?;
        }
        if let Some(log) = log {
            let logged = match old {
                None => log.size_of_insert(new),
                Some(old) => {
                    log.inserted(records, row);
                    log.changed(old, new)
                }
            };
            check_limit(capabilities.max_value, logged, LOGGED, collection, new)?;
        }
        let Some(old) = old else {
            let mut document = maker.document(key, new);
            for (at, (index, entries)) in collection.maintained().zip(indexes).enumerate() {
                let first = entries.len();
                document.append(at, index, entries)?;
                check_keys(capabilities, entries, first, collection, new)?;
            }
            return Ok(());
        };
        for (at, (index, entries)) in collection.maintained().zip(indexes).enumerate() {
            if !wanted(index, new) {
                continue;
            }
            let first = entries.len();
            maker.document(key, new).of_index(collection, at, after)?;
            maker.document(key, old).of_index(collection, at, before)?;
            add_difference(before, after, owner(collection, at, index, key), entries);
            check_keys(capabilities, entries, first, collection, new)?;
        }
        Ok(())
    }

    /// Adds the entries of an existing record in the index at this position.
    pub(super) fn index(
        &mut self,
        collection: &CollectionInfo,
        at: usize,
        key: &[u8],
        document: Doc<'_>,
    ) -> Result<()> {
        let Self { indexes, maker, capabilities, .. } = self;
        let (Some(index), Some(entries)) = (collection.maintained_at(at), indexes.get_mut(at)) else { return Ok(()) };
        let first = entries.len();
        maker.document(key, document).append(at, index, entries)?;
        check_keys(capabilities, entries, first, collection, document)
    }

    /// Removes and returns new properties of the indexes (multikey, truncated), by position.
    pub(super) fn take_properties(&mut self) -> Vec<(usize, IndexInfo)> {
        self.maker.take_properties()
    }

    /// Returns the bytes of memory in use.
    pub(super) fn size(&self) -> usize {
        let events = self.log.as_ref().map_or(0, |log| log.events.size());
        self.records.size() + self.indexes.iter().map(Entries::size).sum::<usize>() + events
    }

    /// Returns the bytes of all keys, values and logged events.
    pub(super) fn bytes(&self) -> usize {
        let in_memory = std::iter::once(&self.records).chain(&self.indexes).flat_map(Entries::iter);
        let events = self.log.as_ref().map_or(0, |log| log.events.size());
        in_memory.fold(self.spilled_bytes + events, |bytes, (key, value)| bytes + key.len() + value.len())
    }

    /// Returns the number of all keys that are written or guarded, without the keys of the log.
    pub(super) fn keys(&self) -> usize {
        self.written_keys() + self.guards.len()
    }

    fn written_keys(&self) -> usize {
        self.spilled_keys + self.records.len() + self.indexes.iter().map(Entries::len).sum::<usize>()
    }

    /// Returns whether the writes are spilled or exceed [`LARGE`].
    pub(super) fn is_large(&self) -> bool {
        self.spilled.is_some() || self.size() > LARGE
    }

    /// Moves the writes to temporary files if they exceed the memory limit. Rows are numbered from 0 again afterwards.
    pub(super) fn spill_if_full(&mut self) -> Result<()> {
        if self.size() > self.memory.limit() { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> Result<()> {
        self.log_inserts();
        self.spilled_bytes = self.bytes();
        self.spilled_keys = self.written_keys();
        let Self { records, indexes, spilled, memory, log, .. } = self;
        let sorter = spilled.get_or_insert_with(|| Box::new(Sorter::new(memory.clone(), u64::MAX)));
        let mut key = Vec::new();
        for (place, entries) in places(records, indexes) {
            let place = place.number().to_be_bytes();
            for (entry, write) in entries.writes() {
                key.clear();
                key.extend_from_slice(&place);
                key.extend_from_slice(entry);
                // No key of a keyspace is a proper prefix of another, as the sorter requires.
                match write {
                    Write::Delete(owner) => sorter.push(&key, &[DELETE], owner)?,
                    Write::Put(value) => sorter.push(&key, &[PUT], value)?,
                }
            }
            entries.clear();
        }
        if let Some(log) = log {
            log.rows = 0;
            for event in log.events.iter() {
                key.clear();
                key.extend_from_slice(&LOG.to_be_bytes());
                key.extend_from_slice(&log.spilled.to_be_bytes());
                sorter.push(&key, &[PUT], event)?;
                log.spilled += 1;
            }
            log.events.clear();
        }
        Ok(())
    }

    /// Logs the new documents among the records that are not logged yet.
    fn log_inserts(&mut self) {
        if let Some(log) = &mut self.log {
            log.inserted(&self.records, self.records.len());
        }
    }

    /// Ends collecting. Where writes were spilled, this sorts all of them.
    pub(super) fn finish(&mut self, call: &CallContext) -> Result<()> {
        self.log_inserts();
        if self.spilled.is_some() && !self.is_finished {
            self.spill()?;
            if let Some(sorter) = &mut self.spilled {
                sorter.finish(&mut call.interrupt.clone())?;
            }
            self.is_finished = true;
        }
        Ok(())
    }

    /// Calls `visitor` with the writes to the wanted places, in the order of places and keys, in blocks that contain all writes of a key. Events are
    /// among them only if they were spilled. Can be called several times, after [`finish`](Self::finish).
    pub(super) fn for_each_block<E: From<Error>>(
        &mut self,
        wanted: impl Fn(BlockPlace) -> bool,
        mut visitor: impl FnMut(BlockPlace, &Entries) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(sorter) = &mut self.spilled else {
            for (place, entries) in places(&mut self.records, &mut self.indexes) {
                if wanted(place) && entries.len() > 0 {
                    entries.sort();
                    visitor(place, entries)?;
                }
            }
            return Ok(());
        };
        sorter.rewind()?;
        let (mut block, mut place) = (Entries::default(), BlockPlace::Records);
        while sorter.advance()? {
            let Some(row) = sorter.current() else { break };
            let Some((number, key)) = row.sort_key().split_first_chunk() else { continue };
            let next = BlockPlace::at(u32::from_be_bytes(*number));
            if !wanted(next) {
                continue;
            }
            let is_full = block.size() > BLOCK_BYTES && block.last_key() != Some(key);
            if block.len() > 0 && (next != place || is_full) {
                visitor(place, &block)?;
                block.clear();
            }
            place = next;
            match row.tie_key() {
                [DELETE] => block.push_delete(key, row.payload),
                _ => block.push(key, row.payload),
            }
        }
        if block.len() > 0 { visitor(place, &block) } else { Ok(()) }
    }
}

/// Tie keys of spilled writes: they sort a delete before a put of the same key.
const DELETE: u8 = 0;
const PUT: u8 = 1;

/// The number of [`BlockPlace::Records`] in the order of places: above those of all indexes, because records are written
/// last.
const RECORDS: u32 = u32::MAX;

/// The number of [`BlockPlace::Log`].
const LOG: u32 = u32::MAX - 1;

impl BlockPlace {
    /// Numbers the places in their order.
    fn number(self) -> u32 {
        match self {
            Self::Index(at) => u32::try_from(at).unwrap_or(RECORDS),
            Self::Log => LOG,
            Self::Records => RECORDS,
        }
    }

    fn at(number: u32) -> Self {
        match usize::try_from(number) {
            _ if number == LOG => Self::Log,
            Ok(at) if number != RECORDS => Self::Index(at),
            _ => Self::Records,
        }
    }
}

/// Returns the writes of each place, in the order of places.
fn places<'e>(
    records: &'e mut Entries,
    indexes: &'e mut [Entries],
) -> impl Iterator<Item = (BlockPlace, &'e mut Entries)> {
    let indexes = indexes.iter_mut().enumerate().map(|(at, entries)| (BlockPlace::Index(at), entries));
    indexes.chain(std::iter::once((BlockPlace::Records, records)))
}

/// Returns the record key on which a delete is conditional: in a unique index that is being built, the build may not have reached the record yet, and
/// another record may have the key. Empty for any other index.
fn owner<'k>(collection: &CollectionInfo, at: usize, index: &IndexInfo, record_key: &'k [u8]) -> &'k [u8] {
    if index.unique && collection.is_building(at) { record_key } else { &[] }
}

/// Adds the writes that replace a record's entries `before` by those `after`. Both are sorted.
fn add_difference(before: &Entries, after: &Entries, owner: &[u8], entries: &mut Entries) {
    let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        match (before.next_if(|_| order.is_le()), after.next_if(|_| order.is_ge())) {
            (Some((_, old)), Some((_, new))) if old == new => {}
            // If only the value of the record's own entry changes, the delete says that the key belongs to the record.
            (old, new) => {
                if let Some((key, _)) = old {
                    entries.push_delete(key, owner);
                }
                if let Some((key, value)) = new {
                    entries.push(key, value);
                }
            }
        }
    }
}

/// Fails if a key of the entries from `first` on is longer than the store allows.
fn check_keys(
    capabilities: &Capabilities,
    entries: &Entries,
    first: usize,
    collection: &CollectionInfo,
    document: Doc<'_>,
) -> Result<()> {
    if capabilities.max_key >= MAX_ENTRY_KEY {
        return Ok(());
    }
    let mut keys = entries.iter_from(first);
    keys.try_for_each(|(key, _)| check_limit(capabilities.max_key, key.len(), "index key", collection, document))
}

/// How [`check_limit`] names what is logged of a change.
const LOGGED: &str = "entry in the log of changes";

fn check_limit(limit: usize, length: usize, what: &str, collection: &CollectionInfo, document: Doc<'_>) -> Result<()> {
    if length <= limit {
        return Ok(());
    }
    let (name, id) = (&collection.name, id(document));
    Err(Error::too_large(format!(
        "the {what} of the document with _id {id:?} in collection {name} has {length} bytes; the store's limit is {limit}"
    )))
}
