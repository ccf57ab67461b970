use std::{sync::Arc, vec};

use slate_query::{
    key::{self, Presence, TypeReader},
    raw::Writer,
};
use slate_store::{Bounds, Cursor, Edge, View};

use super::{Resources, meter::Meter};
use crate::{
    Result,
    catalog::IndexInfo,
    entry::{Entry, FieldOrder},
    interrupt::Interrupt,
    key_range::KeyRange,
    plan::{IndexScan, Stage, Window},
};

/// The distinct values of an index's last field, in that field's direction, each in a document `{v}`. The walk seeks from
/// one value to the next.
pub(crate) struct DistinctKeyRows<V: View> {
    view: V,
    index: Arc<IndexInfo>,
    ranges: vec::IntoIter<KeyRange>,
    cursor: Option<V::Cursor>,
    /// The encoded values of the last entry; the walk continues after all entries with these values.
    group: Vec<u8>,
    /// The number of consecutive values with more entries than [`MAX_STEPS`].
    large_values: usize,
    last: LastValue,
    skip: u64,
    left: u64,
    interrupt: Interrupt,
    meter: Meter,
}

/// The number of entries of one value that the walk steps over before it seeks past the others. A step costs a fraction
/// of a seek.
const MAX_STEPS: usize = 4;

/// After a value with more entries, the walk seeks at once. For every one of this many such values it steps over one
/// entry first, to detect when values have fewer entries.
const RETRY_STEPS_EVERY: usize = 8;

/// Returns the number of entries to step over after this many consecutive large values.
fn max_steps(large_values: usize) -> usize {
    match large_values {
        0 => MAX_STEPS,
        _ if large_values % RETRY_STEPS_EVERY == 1 => 1,
        _ => 0,
    }
}

impl<V: View> DistinctKeyRows<V> {
    pub(super) fn open(view: &V, scan: IndexScan, window: Window, resources: &Resources) -> Self {
        Self {
            view: view.clone(),
            index: scan.index,
            ranges: scan.bounds.into_ranges().into_iter(),
            cursor: None,
            group: Vec::new(),
            large_values: 0,
            last: LastValue::default(),
            skip: window.skip,
            left: window.limit.unwrap_or(u64::MAX),
            interrupt: resources.interrupt.clone(),
            meter: resources.meter(Stage::IxScan),
        }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        let start = self.meter.start();
        let moved = self.advance_within();
        self.meter.stop(start);
        moved
    }

    pub(super) fn current(&self) -> Option<&[u8]> {
        self.last.row.as_deref()
    }

    fn advance_within(&mut self) -> Result<bool> {
        while self.left > 0 && self.next_value()? {
            if self.skip == 0 {
                self.left -= 1;
                return Ok(true);
            }
            self.skip -= 1;
        }
        self.last.row = None;
        Ok(false)
    }

    /// Moves to the next value and decodes it.
    fn next_value(&mut self) -> Result<bool> {
        let mut more = self.leave_group()?;
        loop {
            self.interrupt.tick()?;
            if !more && !self.next_range()? {
                return Ok(false);
            }
            let Some(cursor) = &mut self.cursor else { return Ok(false) };
            let Some((key, value)) = cursor.current() else { return Ok(false) };
            self.meter.key_read(Some((key, value)));
            let entry = Entry::parse(&self.index, key, value)?;
            if self.last.decode(&self.index, entry)? == Presence::Present {
                self.meter.counted.rows += 1;
                self.group.clear();
                self.group.extend_from_slice(entry.values);
                return Ok(true);
            }
            // Null and a missing field have the same key, so another entry of the group may contain null.
            more = cursor.step_forward()?;
        }
    }

    fn next_range(&mut self) -> Result<bool> {
        for range in self.ranges.by_ref() {
            let bounds = Bounds { start: Some(&range.start), end: range.end.as_deref() };
            let mut cursor = self.view.cursor(self.index.keyspace, bounds)?;
            let found = cursor.seek(Edge::First)?;
            self.cursor = Some(cursor);
            if found {
                return Ok(true);
            }
        }
        self.cursor = None;
        Ok(false)
    }

    /// Moves past the entries of the group. Returns `false` at the end of the range.
    fn leave_group(&mut self) -> Result<bool> {
        let Some(cursor) = &mut self.cursor else { return Ok(false) };
        for _ in 0..max_steps(self.large_values) {
            if !cursor.step_forward()? {
                return Ok(false);
            }
            if cursor.current().is_some_and(|(key, _)| !key.starts_with(&self.group)) {
                self.large_values = 0;
                return Ok(true);
            }
            self.meter.key_read(cursor.current());
        }
        self.large_values += 1;
        // 0xff never follows whole values (docs/format.md), so this key is greater than every entry of the group.
        self.group.push(0xff);
        Ok(cursor.seek(Edge::AtOrAfter(&self.group))?)
    }
}

/// The decoded value of an index's last field, in a reused buffer.
#[derive(Default)]
struct LastValue {
    /// The document `{v}`.
    row: Option<Vec<u8>>,
}

impl LastValue {
    /// Decodes the value of an entry.
    fn decode(&mut self, index: &IndexInfo, entry: Entry<'_>) -> Result<Presence> {
        let damaged = || Entry::damaged(&index.name);
        let (_, bits) = FieldOrder::split(entry.extras).ok_or_else(damaged)?;
        let mut row = self.row.take().unwrap_or_default();
        row.clear();
        let mut reader = TypeReader::new(bits);
        let mut rest = entry.values;
        let mut writer = Writer::into_buffer(row);
        let before = writer.checkpoint();
        let mut presence = Presence::Missing;
        for (_, direction) in index.pattern.fields() {
            writer.rollback(before);
            presence = key::decode_into(&mut rest, *direction, &mut reader, b"v", &mut writer).ok_or_else(damaged)?;
        }
        self.row = Some(writer.finish());
        Ok(presence)
    }
}
