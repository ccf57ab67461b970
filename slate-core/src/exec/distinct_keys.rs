use std::sync::Arc;

use slate_query::{
    key::{self, Presence, TypeReader},
    pattern::Direction,
    raw::{Doc, Value, Writer},
};
use slate_store::View;

use super::{Resources, meter::Meter, rows::Rows};
use crate::{
    Result,
    catalog::IndexInfo,
    entry::{FieldOrder, IndexEntry},
    interrupt::Interrupt,
    key_range::RangeWalk,
    plan::IndexScan,
};

/// The distinct values of an index's last field, in that field's direction, each in a document `{v}`. The walk seeks from
/// one value to the next.
pub(crate) struct DistinctKeyRows<V: View> {
    walk: RangeWalk<V>,
    index: Arc<IndexInfo>,
    /// The encoded values of the last entry; the walk continues after all entries with these values.
    group: Vec<u8>,
    last: FieldValue,
    interrupt: Interrupt,
    meter: Meter,
}

impl<V: View> DistinctKeyRows<V> {
    pub(super) fn open(view: &V, scan: IndexScan, resources: &Resources) -> Self {
        Self {
            meter: resources.meter(IndexScan::STAGE),
            walk: RangeWalk::new(view.clone(), scan.index.keyspace, scan.bounds.into_ranges(), Direction::Ascending),
            last: FieldValue::of(scan.index.pattern.fields().len().saturating_sub(1)),
            index: scan.index,
            group: Vec::new(),
            interrupt: resources.interrupt.clone(),
        }
    }

    /// Moves to the next value and decodes it. Returns `false` after the last.
    fn next_value(&mut self) -> Result<bool> {
        // An encoded value is not empty, so neither is a group.
        let mut more = match self.group.is_empty() {
            true => self.walk.advance()?,
            false => self.walk.leave(&mut self.group, |entry| self.meter.key_read(entry))?,
        };
        while more {
            self.interrupt.tick()?;
            let Some((key, value)) = self.walk.current() else { break };
            self.meter.key_read(Some((key, value)));
            let entry = IndexEntry::parse(&self.index, key, value)?;
            if self.last.decode(&self.index, &entry)? == Presence::Present {
                self.meter.counted.rows += 1;
                self.group.clear();
                self.group.extend_from_slice(entry.values);
                return Ok(true);
            }
            // Null and a missing field have the same key, so another entry of the group may contain null.
            more = self.walk.advance()?;
        }
        self.last.row = None;
        Ok(false)
    }
}

impl<V: View> Rows for DistinctKeyRows<V> {
    fn advance(&mut self) -> Result<bool> {
        let start = self.meter.start();
        let moved = self.next_value();
        self.meter.stop(start);
        moved
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.last.row.as_deref().map(Doc::new)
    }
}

/// The decoded value of one field of an index, in a reused buffer.
pub(super) struct FieldValue {
    field: usize,
    /// The document `{v}`.
    row: Option<Vec<u8>>,
}

impl FieldValue {
    /// Creates the buffer for the field at this position of an index.
    pub(super) fn of(field: usize) -> Self {
        Self { field, row: None }
    }

    /// Returns the decoded value; `None` if the field is missing.
    pub(super) fn value(&self) -> Option<Value<'_>> {
        Doc::new(self.row.as_deref()?).elements().next().map(|element| element.value)
    }

    /// Decodes the field's value from an entry. Fails if the entry is damaged.
    pub(super) fn decode(&mut self, index: &IndexInfo, entry: &IndexEntry<'_>) -> Result<Presence> {
        let damaged = || IndexEntry::damaged(&index.name);
        let (_, bits) = FieldOrder::split(entry.extras).ok_or_else(damaged)?;
        let mut row = self.row.take().unwrap_or_default();
        row.clear();
        let mut reader = TypeReader::new(bits);
        let mut rest = entry.values;
        let mut writer = Writer::into_buffer(row);
        let before = writer.checkpoint();
        let mut presence = Presence::Missing;
        for (_, direction) in index.pattern.fields().iter().take(self.field + 1) {
            writer.rollback(before);
            presence = key::decode_into(&mut rest, *direction, &mut reader, b"v", &mut writer).ok_or_else(damaged)?;
        }
        self.row = Some(writer.finish());
        Ok(presence)
    }
}
