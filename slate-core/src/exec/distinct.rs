use ahash::AHashMap;
use slate_query::{
    distinct, key,
    path::Path,
    pattern::Direction,
    raw::{Doc, Kind, OwnedValue, Value, Writer},
};
use slate_store::View;

use super::{RawRows, Resources, distinct_keys::DistinctKeyRows};
use crate::{
    Result,
    interrupt::Interrupt,
    plan::{IndexScan, Values, Window},
    spill::{Memory, Sorter, Spilled},
};

/// Different values, in order, each in a document `{v}`. Of values that compare equal the one in the record that comes
/// first in the order of `_id` represents them, whatever the plan reads first.
pub(crate) struct DistinctRows {
    /// The values, each as often as it was found and the one that represents its equals first.
    sorter: Sorter,
    /// The sort key of the value handed out last.
    last: Option<Vec<u8>>,
    skip: u64,
    left: u64,
    current: Option<Vec<u8>>,
    interrupt: Interrupt,
}

impl DistinctRows {
    /// The different values at a path of records.
    pub(super) fn of_records<V: View>(
        mut input: RawRows<V>,
        path: &Path,
        values: Values,
        resources: &Resources,
    ) -> Result<Self> {
        let mut found = Found::new(resources.memory.clone(), values.direction);
        while input.advance()? {
            let Some(record) = input.current() else { break };
            let mut seen = Ok(());
            distinct::values(path, record.document(), &mut |value| {
                if seen.is_ok() {
                    seen = found.see(value, record.key);
                }
            });
            seen?;
        }
        Self::open(found.into_sorter()?, values, resources)
    }

    /// The different values of an index's last field, against that field's direction: their numbers are what they are
    /// sorted by.
    pub(super) fn of_keys<V: View>(view: &V, scan: &IndexScan, values: Values, resources: &Resources) -> Result<Self> {
        let mut sorter = Sorter::new(resources.memory.clone(), values.window.reach().unwrap_or(u64::MAX));
        let mut rows = DistinctKeyRows::open(view, scan, Window::default(), resources);
        let mut payload = Vec::new();
        let mut left = u64::MAX;
        while rows.advance()? {
            let Some(value) = rows.current().and_then(|row| Doc::new(row).values().next()) else { break };
            left -= 1;
            write_value(value, &mut payload);
            sorter.push(&left.to_be_bytes(), &[], &payload)?;
        }
        Self::open(sorter, values, resources)
    }

    fn open(mut sorter: Sorter, values: Values, resources: &Resources) -> Result<Self> {
        let mut interrupt = resources.interrupt.clone();
        sorter.finish(&mut interrupt)?;
        let (skip, left) = (values.window.skip, values.window.limit.unwrap_or(u64::MAX));
        Ok(Self { sorter, last: None, skip, left, current: None, interrupt })
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        let mut buffer = self.current.take().unwrap_or_default();
        while self.left > 0 && self.sorter.advance()? {
            self.interrupt.tick()?;
            let Some(row) = self.sorter.current() else { break };
            if self.last.as_deref() == Some(row.sort_key()) {
                continue;
            }
            let last = self.last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(row.sort_key());
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.left -= 1;
            let Some(value) = read_value(row.payload) else { continue };
            buffer.clear();
            let mut writer = Writer::into_buffer(buffer);
            writer.append(b"v", value);
            self.current = Some(writer.finish());
            return Ok(true);
        }
        Ok(false)
    }

    pub(super) fn current(&self) -> Option<&[u8]> {
        self.current.as_deref()
    }

    /// What was written to temporary files.
    pub(super) fn spilled(&self) -> Spilled {
        self.sorter.spilled()
    }
}

/// A value as a row's payload: its type, and its bytes.
fn write_value(value: Value<'_>, payload: &mut Vec<u8>) {
    payload.clear();
    payload.push(value.kind().byte());
    payload.extend_from_slice(value.bytes());
}

fn read_value(payload: &[u8]) -> Option<Value<'_>> {
    let (kind, bytes) = payload.split_first()?;
    Some(Value::new(Kind::from_byte(*kind)?, bytes))
}

/// The values met so far, by their key bytes.
struct Found {
    memory: Memory,
    direction: Direction,
    held: AHashMap<Box<[u8]>, Representative>,
    /// The bytes taken by what is held.
    size: usize,
    buffer: Vec<u8>,
    /// Where memory was full: what was held then, run by run.
    sorter: Sorter,
    spilled: bool,
}

/// What stands for a value's equals: itself, and the record that it is in.
struct Representative {
    record_key: Box<[u8]>,
    value: OwnedValue,
}

impl Representative {
    fn new(value: Value<'_>, record_key: &[u8]) -> Self {
        Self { record_key: record_key.into(), value: value.to_owned() }
    }

    fn size(&self) -> usize {
        self.record_key.len() + self.value.as_value().bytes().len()
    }
}

/// What a value costs beyond its bytes: an entry of the table, which is never fuller than seven eighths, and three
/// allocations.
const OVERHEAD: usize = 128;

impl Found {
    fn new(memory: Memory, direction: Direction) -> Self {
        let sorter = Sorter::new(memory.clone(), u64::MAX);
        Self { memory, direction, held: AHashMap::new(), size: 0, buffer: Vec::new(), sorter, spilled: false }
    }

    fn see(&mut self, value: Value<'_>, record_key: &[u8]) -> Result<()> {
        self.buffer.clear();
        key::encode_directed(Some(value), self.direction, &mut self.buffer);
        match self.held.get_mut(self.buffer.as_slice()) {
            Some(first) if &*first.record_key <= record_key => return Ok(()),
            Some(first) => {
                self.size -= first.size();
                *first = Representative::new(value, record_key);
                self.size += first.size();
            }
            None => {
                let first = Representative::new(value, record_key);
                self.size += OVERHEAD + self.buffer.len() + first.size();
                self.held.insert(self.buffer.as_slice().into(), first);
            }
        }
        if self.size > self.memory.limit() { self.spill() } else { Ok(()) }
    }

    /// What is held, in order.
    fn take_sorted(&mut self) -> Vec<(Box<[u8]>, Representative)> {
        let mut sorted: Vec<_> = self.held.drain().collect();
        sorted.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        self.size = 0;
        sorted
    }

    /// Writes what is held as a run, past the sorter's own memory.
    fn spill(&mut self) -> Result<()> {
        self.spilled = true;
        let sorted = self.take_sorted();
        let mut payload = Vec::new();
        self.sorter.push_run(|run| {
            sorted.iter().try_for_each(|(key, first)| {
                write_value(first.value.as_value(), &mut payload);
                run.add(key, &first.record_key, &payload)
            })
        })
    }

    fn into_sorter(mut self) -> Result<Sorter> {
        if self.spilled {
            self.spill()?;
            return Ok(self.sorter);
        }
        let mut payload = Vec::new();
        for (key, first) in self.take_sorted() {
            write_value(first.value.as_value(), &mut payload);
            self.sorter.push(&key, &first.record_key, &payload)?;
        }
        Ok(self.sorter)
    }
}
