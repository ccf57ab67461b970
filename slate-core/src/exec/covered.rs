use slate_query::{
    key::{self, Presence, TypeReader},
    pattern::Direction,
    raw::{Doc, Writer},
};
use slate_store::View;

use super::{Resources, entries::EntryWalk, meter::Meter};
use crate::{
    Error, Result,
    entry::{Entry, FieldOrder},
    plan::{CoveredField, IndexScan, Window},
};

/// Documents made of an index's entries: each value as it was stored, type and all, in the document's own order.
pub(crate) struct CoveredRows<V: View> {
    walk: EntryWalk<V>,
    fields: Vec<(Box<[u8]>, Direction)>,
    shown: Vec<CoveredField>,
    name: Box<str>,
    skip: u64,
    left: u64,
    scratch: Scratch,
    row: Option<Vec<u8>>,
    /// Of the index scan.
    meter: Meter,
}

impl<V: View> CoveredRows<V> {
    pub(super) fn open(
        view: &V,
        scan: IndexScan,
        shown: Vec<CoveredField>,
        window: Window,
        resources: &Resources,
    ) -> Self {
        let meter = resources.meter("IXSCAN");
        let fields = scan.index.pattern.fields().iter();
        Self {
            fields: fields.map(|(path, direction)| (path.as_str().as_bytes().into(), *direction)).collect(),
            shown,
            name: scan.index.name.clone(),
            walk: EntryWalk::open(view, scan, &resources.interrupt, meter.same()),
            skip: window.skip,
            left: window.limit.unwrap_or(u64::MAX),
            scratch: Scratch::default(),
            row: None,
            meter,
        }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        let mut buffer = self.row.take().unwrap_or_default();
        while self.skip > 0 && self.next_entry()? {
            self.skip -= 1;
        }
        if self.left == 0 || !self.next_entry()? {
            self.left = 0;
            return Ok(false);
        }
        self.left -= 1;
        let Some(entry) = self.walk.current()? else { return Ok(false) };
        buffer.clear();
        let built = build(entry, &self.fields, &self.shown, &mut self.scratch, buffer);
        self.row = Some(built.ok_or_else(|| Error::corrupt(format!("an entry of index {} is damaged", self.name)))?);
        Ok(true)
    }

    fn next_entry(&mut self) -> Result<bool> {
        let start = self.meter.start();
        let more = self.walk.advance()?;
        self.meter.moved(start, more);
        Ok(more)
    }

    pub(super) fn current(&self) -> Option<&[u8]> {
        self.row.as_deref()
    }
}

/// What building a row needs, kept from row to row.
struct Scratch {
    /// The values of the entry, as a document.
    values: Vec<u8>,
    /// The numbers of the fields that these are of.
    found: Vec<usize>,
    types: TypeReader<'static>,
    last: Last,
}

/// What the row before was made of: entries of one value stand side by side, and differ in their `_id`s only.
#[derive(Default)]
struct Last {
    /// The entry's values; empty where they alone do not tell how the row looks.
    values: Vec<u8>,
    /// The row's fields behind `_id`.
    fields: Vec<u8>,
}

impl Last {
    /// Whether an entry gives the same fields.
    fn is_like(&self, entry: &Entry<'_>) -> bool {
        entry.extras.is_empty() && !self.values.is_empty() && self.values == entry.values
    }

    fn note(&mut self, entry: &Entry<'_>, row: &[u8], shown: &[CoveredField]) {
        self.values.clear();
        self.fields.clear();
        if entry.extras.is_empty() {
            let id = Doc::new(row).elements().next().filter(|_| shown.contains(&CoveredField::Id));
            // A type byte and a terminator stand around a name.
            let id_length = id.map_or(0, |id| id.name.len() + id.value.bytes().len() + 2);
            let end = row.len().saturating_sub(1);
            self.fields.extend_from_slice(row.get(4 + id_length..end).unwrap_or_default());
            self.values.extend_from_slice(entry.values);
        }
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self { values: Vec::new(), found: Vec::new(), types: TypeReader::new(&[]), last: Last::default() }
    }
}

/// The document, `_id` in front; `None` where the entry is damaged.
fn build(
    entry: Entry<'_>,
    fields: &[(Box<[u8]>, Direction)],
    shown: &[CoveredField],
    scratch: &mut Scratch,
    buffer: Vec<u8>,
) -> Option<Vec<u8>> {
    if scratch.last.is_like(&entry) {
        let mut document = Writer::into_buffer(buffer);
        if shown.contains(&CoveredField::Id) {
            let (mut id, mut types) = (entry.record_key, TypeReader::new(&[]));
            key::decode_into(&mut id, Direction::Ascending, &mut types, b"_id", &mut document)?;
        }
        document.append_raw(&scratch.last.fields);
        return Some(document.finish());
    }
    let (order, bits) = FieldOrder::split(entry.extras)?;
    // What a damaged entry leaves of the scratch does not matter: its error ends the rows.
    let Scratch { mut values, mut found, types, mut last } = std::mem::take(scratch);
    values.clear();
    found.clear();
    let mut reader = types.renew(bits);
    let mut rest = entry.values;
    let mut decoded = Writer::into_buffer(values);
    // Values must be decoded in the key's order: their type bits are read on the way.
    for (number, (name, direction)) in fields.iter().enumerate() {
        if key::decode_into(&mut rest, *direction, &mut reader, name, &mut decoded)? == Presence::Present {
            found.push(number);
        }
    }
    reader.next_part();
    let mut document = Writer::into_buffer(buffer);
    if shown.contains(&CoveredField::Id) {
        let mut id = entry.record_key;
        key::decode_into(&mut id, Direction::Ascending, &mut reader, b"_id", &mut document)?;
    }
    let values = decoded.finish();
    let decoded = Doc::new(&values);
    let mut append = |number: usize| {
        let at = found.iter().position(|&present| present == number);
        if let Some(element) = at.and_then(|at| decoded.elements().nth(at)) {
            document.append(element.name, element.value);
        }
    };
    let wanted = |number: usize| shown.contains(&CoveredField::Indexed(number));
    if order.is_empty() {
        (0..fields.len()).filter(|&number| wanted(number)).for_each(&mut append);
    } else {
        order.iter().map(|&number| usize::from(number)).filter(|&number| wanted(number)).for_each(&mut append);
    }
    let row = document.finish();
    last.note(&entry, &row, shown);
    *scratch = Scratch { values, found, types: reader.renew(&[]), last };
    Some(row)
}
