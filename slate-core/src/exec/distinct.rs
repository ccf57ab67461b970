use std::sync::Arc;

use slate_query::{
    collation::Collation,
    distinct,
    key::{self, Presence},
    path::Path,
    pattern::Direction,
    raw::{Doc, Kind, Value, same, write_one},
};
use slate_store::View;

use super::{
    Resources,
    distinct_keys::{DistinctKeyRows, FieldValue},
    ids::EntryWalk,
    rows::{BoxedRecords, Rows},
};
use crate::{
    Error, Result,
    catalog::CollectionInfo,
    interrupt::Interrupt,
    metrics::Spilled,
    plan::{IndexScan, Values},
    spill::{FirstRows, Memory, Sorter},
};

/// Distinct values in order, each in a document `{v}`. Of values that compare equal, the one in the record with the
/// least `_id` is returned, independent of the plan.
pub(crate) struct DistinctRows {
    /// Sorted values; among equal values the one to return comes first.
    sorter: Sorter,
    /// The sort key of the last value returned: rows with the same key are repetitions of it.
    last: Option<Vec<u8>>,
    /// Whether there is a current row.
    has_row: bool,
    interrupt: Interrupt,
}

impl DistinctRows {
    /// Finds the distinct values at `path` in the records.
    pub(super) fn of_records(
        mut input: BoxedRecords<'_>,
        path: &Path,
        values: &Values,
        resources: &Resources,
    ) -> Result<Self> {
        let mut found = FoundValues::new(resources.memory.clone(), values);
        while input.advance()? {
            let Some(record) = input.record() else { break };
            found.add_all(path, record.document(), record.key)?;
        }
        Self::open(found.rows.into_sorter(), resources)
    }

    /// Finds the distinct values of an index's field in its entries.
    ///
    /// An empty array has the key of undefined, and in an array of documents a missing field has the key of null. If a record has such an
    /// entry, its values are read from the record.
    pub(super) fn of_entries<V: View>(
        view: &V,
        collection: &CollectionInfo,
        scan: IndexScan,
        (field, path): (usize, &Path),
        values: &Values,
        resources: &Resources,
    ) -> Result<Self> {
        let mut found = FoundValues::new(resources.memory.clone(), values);
        let mut meter = resources.meter(IndexScan::STAGE);
        let start = meter.start();
        let index = Arc::clone(&scan.index);
        let has_arrays = index.is_multikey_at(field);
        let mut value = FieldValue::of(field);
        let mut walk = EntryWalk::open(view, scan, &resources.interrupt, meter.same());
        while walk.advance()? {
            let Some(entry) = walk.current()? else { break };
            let presence = value.decode(&index, &entry)?;
            let decoded = value.value().filter(|_| presence == Presence::Present);
            let is_ambiguous = match decoded.map(Value::kind) {
                Some(Kind::Undefined) => has_arrays,
                None | Some(Kind::Null) => has_arrays && path.parts().len() > 1,
                Some(_) => false,
            };
            if is_ambiguous {
                let record_key = entry.record_key;
                let added = view.get(collection.records, record_key, |record| {
                    meter.document_read(record);
                    found.add_all(path, Doc::stored(record), record_key)
                })?;
                added.ok_or_else(|| Error::dangling(&collection.name))??;
            } else if let Some(value) = decoded {
                found.add(value, entry.record_key)?;
            }
            meter.counted.rows += 1;
        }
        meter.stop(start);
        Self::open(found.rows.into_sorter(), resources)
    }

    /// Collects the distinct values of an index's last field in the reverse of the index's direction: numbers the
    /// values downwards and sorts them by these numbers.
    pub(super) fn of_keys<V: View>(view: &V, scan: IndexScan, values: &Values, resources: &Resources) -> Result<Self> {
        let mut sorter = Sorter::new(resources.memory.clone(), values.window.reach().unwrap_or(u64::MAX));
        let mut rows = DistinctKeyRows::open(view, scan, resources);
        let mut left = u64::MAX;
        while rows.advance()? {
            let Some(row) = rows.current() else { break };
            left -= 1;
            sorter.push(&left.to_be_bytes(), &[], row.bytes())?;
        }
        Self::open(sorter, resources)
    }

    fn open(mut sorter: Sorter, resources: &Resources) -> Result<Self> {
        let mut interrupt = resources.interrupt.clone();
        sorter.finish(&mut interrupt)?;
        Ok(Self { sorter, last: None, has_row: false, interrupt })
    }
}

impl Rows for DistinctRows {
    fn park(&mut self) {
        self.sorter.park();
    }

    fn advance(&mut self) -> Result<bool> {
        self.has_row = false;
        while self.sorter.advance()? {
            self.interrupt.tick()?;
            let Some(row) = self.sorter.current() else { break };
            if self.last.as_deref().is_some_and(|last| same(last, row.sort_key())) {
                continue;
            }
            let last = self.last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(row.sort_key());
            self.has_row = true;
            return Ok(true);
        }
        Ok(false)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| self.sorter.payload().map(Doc::new)).flatten()
    }

    fn spilled(&self) -> Spilled {
        self.sorter.spilled()
    }
}

/// The values found so far, by their encoded keys.
struct FoundValues {
    rows: FirstRows,
    direction: Direction,
    collation: Option<Collation>,
    key: Vec<u8>,
    payload: Vec<u8>,
    /// A cache of repeated values. A value in it does not have to be encoded again, which pays off if there are few
    /// distinct values.
    repeated: [Repeated; REPEATED],
}

/// A value of the record `record_key` that is not returned, because an equal value comes before it. Of equal values the one in the record
/// with the least `_id` is returned, so this value can be ignored in records with greater keys, too.
#[derive(Default)]
struct Repeated {
    kind: Option<Kind>,
    bytes: Vec<u8>,
    record_key: Vec<u8>,
}

/// The number of values in the cache of repeated values: as many as four bits of a hash distinguish.
const REPEATED: usize = 16;

/// The longest value that is cached, in bytes: the cache does not count towards the memory limit.
const MAX_REPEATED_BYTES: usize = 256;

impl Repeated {
    fn set(&mut self, value: Value<'_>, record_key: &[u8]) {
        self.kind = Some(value.kind());
        self.bytes.clear();
        self.bytes.extend_from_slice(value.bytes());
        self.record_key.clear();
        self.record_key.extend_from_slice(record_key);
    }

    #[inline]
    fn is_represented(&self, value: Value<'_>, record_key: &[u8]) -> bool {
        self.kind == Some(value.kind()) && same(&self.bytes, value.bytes()) && *self.record_key <= *record_key
    }

    /// Returns the cache slot of a value: a hash of its last bytes, in which short strings and numbers of one field
    /// differ.
    #[inline]
    fn place(value: Value<'_>) -> usize {
        let bytes = value.bytes();
        let word = bytes.last_chunk().map_or_else(
            || bytes.iter().fold(0, |word, &byte| word << u8::BITS | u64::from(byte)),
            |word| u64::from_le_bytes(*word),
        );
        // Multiplicative hashing uses the highest bits of the product, which depend on all bits (Knuth, 6.4).
        (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % REPEATED
    }
}

impl FoundValues {
    fn new(memory: Memory, values: &Values) -> Self {
        Self {
            rows: FirstRows::new(memory),
            direction: values.direction,
            collation: values.collation.clone(),
            key: Vec::new(),
            payload: Vec::new(),
            repeated: Default::default(),
        }
    }

    /// Adds the values at a path of a record.
    fn add_all(&mut self, path: &Path, document: Doc<'_>, record_key: &[u8]) -> Result<()> {
        let mut added = Ok(());
        distinct::values(path, document, &mut |value| {
            if added.is_ok() {
                added = self.add(value, record_key);
            }
        });
        added
    }

    fn add(&mut self, value: Value<'_>, record_key: &[u8]) -> Result<()> {
        let Self { rows, direction, collation, key, payload, repeated } = self;
        let cached = repeated.get_mut(Repeated::place(value));
        if cached.as_ref().is_some_and(|cached| cached.is_represented(value, record_key)) {
            return Ok(());
        }
        key.clear();
        match collation {
            None => key::encode_directed(Some(value), *direction, key),
            Some(collation) => key::encode_directed(Some(collation.apply(value).as_value()), *direction, key),
        }
        let is_taken = rows.push(key, record_key, || {
            write_one(b"v", value, payload);
            payload
        })?;
        if let Some(cached) = cached.filter(|_| !is_taken && value.bytes().len() <= MAX_REPEATED_BYTES) {
            cached.set(value, record_key);
        }
        Ok(())
    }
}
