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

/// The different values of an index's last field, in that field's direction, each in a document `{v}`. From one value the
/// walk goes straight to the next.
pub(crate) struct DistinctKeyRows<V: View> {
    view: V,
    index: Arc<IndexInfo>,
    ranges: vec::IntoIter<KeyRange>,
    /// The range that is being walked.
    cursor: Option<V::Cursor>,
    /// The bytes of the values last handed out, whose other entries have to be left.
    group: Vec<u8>,
    /// How many values in a row had more entries than were stepped over.
    large: usize,
    last: LastValue,
    skip: u64,
    left: u64,
    interrupt: Interrupt,
    meter: Meter,
}

/// So many entries of one value are stepped over before the walk seeks past the rest: a step costs a fraction of a seek.
const STEPS: usize = 4;

/// Behind a value that had more entries one is stepped over; behind several such values in a row none, except now and then, to
/// see whether the values that come are still as large.
fn steps(large: usize) -> usize {
    const NOW_AND_THEN: usize = 8;
    match large {
        0 => STEPS,
        _ if large % NOW_AND_THEN == 1 => 1,
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
            large: 0,
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

    /// Goes to the next value, and decodes it.
    fn next_value(&mut self) -> Result<bool> {
        let mut more = self.leave()?;
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
            // Null and missing are one value to the key: the group is gone through until one of them is there.
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

    /// Moves past every entry of the group, within its range; whether there is one behind it.
    fn leave(&mut self) -> Result<bool> {
        let Some(cursor) = &mut self.cursor else { return Ok(false) };
        for _ in 0..steps(self.large) {
            if !cursor.step_forward()? {
                return Ok(false);
            }
            if cursor.current().is_some_and(|(key, _)| !key.starts_with(&self.group)) {
                self.large = 0;
                return Ok(true);
            }
            self.meter.key_read(cursor.current());
        }
        self.large += 1;
        // No byte that can follow whole values is 0xff.
        self.group.push(0xff);
        Ok(cursor.seek(Edge::AtOrAfter(&self.group))?)
    }
}

/// The value of an index's last field, as the record has it: decoded in a buffer that is kept from entry to entry.
#[derive(Default)]
struct LastValue {
    /// The document `{v}` that holds it.
    row: Option<Vec<u8>>,
}

impl LastValue {
    /// Decodes the value of an entry; whether the field is there.
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
