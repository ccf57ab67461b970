//! Answers that are in the keys alone.

use std::ops::ControlFlow;

use slate_query::{
    key::{self, Presence, TypeReader},
    pattern::Direction,
    raw::{Doc, Value, Writer},
};
use slate_store::{Bounds, Cursor, Edge, Keyspace, View};

use super::{
    Resources,
    entries::EntryWalk,
    meter::Meter,
    probe::{self, RangeWalk},
};
use crate::{
    Error, Result,
    catalog::{CollectionInfo, IndexInfo},
    entry::{Entry, FieldOrder},
    interrupt::Interrupt,
    plan::{ByteRange, CountedKeys, IndexScan, record_ranges},
};

/// How many keys there are.
pub(super) fn count_keys<V: View>(
    view: &V,
    collection: &CollectionInfo,
    keys: &CountedKeys,
    resources: &Resources,
) -> Result<u64> {
    let mut meter = resources.meter(match keys {
        CountedKeys::Records { .. } => "COLLSCAN",
        CountedKeys::Entries(_) => "IXSCAN",
    });
    let start = meter.start();
    let counted = match keys {
        CountedKeys::Records { bounds } => {
            count_ranges(view, collection.records, record_ranges(bounds.as_ref()), resources)?
        }
        CountedKeys::Entries(scan) if scan.checks.is_empty() => {
            count_ranges(view, scan.index.keyspace, scan.bounds.ranges(&scan.index), resources)?
        }
        CountedKeys::Entries(scan) => {
            let mut walk = EntryWalk::open(view, scan, &resources.interrupt, meter.same());
            let mut counted = 0;
            while walk.advance()? {
                counted += 1;
            }
            meter.counted.rows = counted;
            meter.stop(start);
            return Ok(counted);
        }
    };
    // They were counted, and none was shown.
    (meter.counted.keys, meter.counted.rows) = (counted, counted);
    meter.stop(start);
    Ok(counted)
}

/// How many keys lie within the ranges. A store that knows the size of a keyspace is asked for it; parts are walked here,
/// where the walk can be interrupted.
fn count_ranges<V: View>(view: &V, keyspace: Keyspace, ranges: Vec<ByteRange>, resources: &Resources) -> Result<u64> {
    let mut interrupt = resources.interrupt.clone();
    interrupt.check()?;
    if let [ByteRange { start, end: None }] = ranges.as_slice()
        && start.is_empty()
    {
        return probe::count(view, keyspace, &ranges, u64::MAX);
    }
    let mut walk = RangeWalk::new(view.clone(), keyspace, ranges, Direction::Ascending);
    let mut counted = 0;
    while walk.advance()? {
        interrupt.tick()?;
        counted += 1;
    }
    Ok(counted)
}

/// Hands `see` the different values of an index's last field, in that field's direction, until it has seen enough. From
/// one value the walk goes straight to the next.
pub(super) fn distinct_keys<V: View>(
    view: &V,
    scan: &IndexScan,
    resources: &Resources,
    mut see: impl FnMut(Value<'_>) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut meter = resources.meter("IXSCAN");
    let start = meter.start();
    for range in scan.bounds.ranges(&scan.index) {
        if distinct_in(view, &scan.index, &range, &mut resources.interrupt.clone(), &mut meter, &mut see)?.is_break() {
            break;
        }
    }
    meter.stop(start);
    Ok(())
}

/// So many entries of one value are stepped over before the walk seeks past the rest: a step costs a fraction of a seek.
const STEPS: usize = 4;

fn distinct_in<V: View>(
    view: &V,
    index: &IndexInfo,
    range: &ByteRange,
    interrupt: &mut Interrupt,
    meter: &mut Meter,
    see: &mut impl FnMut(Value<'_>) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    let bounds = Bounds { start: Some(&range.start), end: range.end.as_deref() };
    let mut cursor = view.cursor(index.keyspace, bounds)?;
    let mut more = cursor.seek(Edge::First)?;
    let mut group: Vec<u8> = Vec::new();
    let mut last = LastValue::default();
    while more {
        interrupt.tick()?;
        let Some((key, value)) = cursor.current() else { break };
        meter.key_read(Some((key, value)));
        let entry = Entry::parse(index, key, value)?;
        let Some(value) = last.decode(index, entry)? else {
            // Null and missing are one value to the key: the group is gone through until one of them is there.
            more = cursor.step_forward()?;
            continue;
        };
        meter.counted.rows += 1;
        if see(value)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        group.clear();
        group.extend_from_slice(entry.values);
        more = leave(&mut cursor, &mut group, meter)?;
    }
    Ok(ControlFlow::Continue(()))
}

/// Moves past every entry whose values begin with `group`, which is its to spoil.
fn leave(cursor: &mut impl Cursor, group: &mut Vec<u8>, meter: &mut Meter) -> Result<bool> {
    for _ in 0..STEPS {
        if !cursor.step_forward()? {
            return Ok(false);
        }
        if cursor.current().is_some_and(|(key, _)| !key.starts_with(group.as_slice())) {
            return Ok(true);
        }
        meter.key_read(cursor.current());
    }
    // No byte that can follow whole values is 0xff.
    group.push(0xff);
    Ok(cursor.seek(Edge::AtOrAfter(group))?)
}

/// The value of an index's last field, as the record has it: decoded in buffers that are kept from entry to entry.
struct LastValue {
    document: Vec<u8>,
    types: TypeReader<'static>,
}

impl Default for LastValue {
    fn default() -> Self {
        Self { document: Vec::new(), types: TypeReader::new(&[]) }
    }
}

impl LastValue {
    /// The value; `None` where the field is missing.
    fn decode(&mut self, index: &IndexInfo, entry: Entry<'_>) -> Result<Option<Value<'_>>> {
        let damaged = || Error::corrupt(format!("an entry of index {} is damaged", index.name));
        let (_, bits) = FieldOrder::split(entry.extras).ok_or_else(damaged)?;
        let Self { mut document, types } = std::mem::take(self);
        document.clear();
        let mut reader = types.renew(bits);
        let mut rest = entry.values;
        let mut writer = Writer::into_buffer(document);
        let before = writer.checkpoint();
        let mut presence = Presence::Missing;
        for (_, direction) in index.pattern.fields() {
            writer.rollback(before);
            presence = key::decode_into(&mut rest, *direction, &mut reader, b"", &mut writer).ok_or_else(damaged)?;
        }
        *self = Self { document: writer.finish(), types: reader.renew(&[]) };
        Ok(match presence {
            Presence::Present => Doc::new(&self.document).values().next(),
            Presence::Missing => None,
        })
    }
}
