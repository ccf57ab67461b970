use std::ops::Range;

use slate_query::{
    key::{self, Overwrite, Presence, TypeReader},
    pattern::Direction,
    raw::{Doc, Writer, same},
};
use slate_store::View;

use super::{Resources, ids::EntryWalk, meter::Meter, rows::Rows};
use crate::{
    Result,
    entry::{FieldOrder, IndexEntry},
    plan::{CoveredField, IndexScan},
};

/// Documents built from the entries of an index, without reading records.
pub(crate) struct CoveredRows<V: View> {
    walk: EntryWalk<V>,
    shape: Shape,
    index: Box<str>,
    row: Row,
    /// Whether there is a current row.
    has_row: bool,
    meter: Meter,
}

impl<V: View> CoveredRows<V> {
    pub(super) fn open(view: &V, scan: IndexScan, included: Vec<CoveredField>, resources: &Resources) -> Self {
        let meter = resources.meter(IndexScan::STAGE);
        let fields = scan.index.pattern.fields().iter();
        let fields = fields.map(|(path, direction)| (path.as_str().as_bytes().into(), *direction)).collect();
        Self {
            shape: Shape { fields, has_id: included.contains(&CoveredField::Id), included },
            index: scan.index.name.clone(),
            walk: EntryWalk::open(view, scan, &resources.interrupt, meter.same()),
            row: Row::default(),
            has_row: false,
            meter,
        }
    }

    #[inline(always)]
    fn next_entry(&mut self) -> Result<bool> {
        if !self.meter.is_read() {
            return self.walk.advance();
        }
        let start = self.meter.start();
        let more = self.walk.advance()?;
        self.meter.moved_by(start, u64::from(more));
        Ok(more)
    }
}

impl<V: View> Rows for CoveredRows<V> {
    #[inline(never)]
    fn advance(&mut self) -> Result<bool> {
        self.has_row = false;
        if !self.next_entry()? {
            return Ok(false);
        }
        let Some(entry) = self.walk.current()? else { return Ok(false) };
        self.has_row = self.row.make(&entry, &self.shape).is_some();
        if self.has_row { Ok(true) } else { Err(IndexEntry::damaged(&self.index)) }
    }

    /// Moves past the entries that make the same document: at most `most`, and one if the document has an `_id`.
    fn advance_run(&mut self, most: u64) -> Result<u64> {
        if !self.advance()? {
            return Ok(0);
        }
        if self.shape.has_id || most == 1 {
            return Ok(1);
        }
        let start = self.meter.start();
        let passed = self.walk.skip_run(&self.row.values, &self.row.extras, most - 1)?;
        self.meter.moved_by(start, passed);
        Ok(1 + passed)
    }

    /// Moves over entries without making their documents.
    fn skip(&mut self, mut rows: u64) -> Result<u64> {
        while rows > 0 && self.next_entry()? {
            rows -= 1;
        }
        Ok(rows)
    }

    #[inline]
    fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::new(&self.row.document))
    }
}

/// Builds documents from entries.
struct Shape {
    /// The names of the index's fields, and their directions, which decoding an entry needs.
    fields: Vec<(Box<[u8]>, Direction)>,
    included: Vec<CoveredField>,
    has_id: bool,
}

/// The last document and its entry. Adjacent entries often differ only in their `_id`; the next document is then the
/// last one with another `_id`.
#[derive(Default)]
struct Row {
    document: Vec<u8>,
    /// The encoded values of the entry that `document` was built from.
    values: Vec<u8>,
    extras: Vec<u8>,
    /// The position of the `_id`'s value in `document`, and how to overwrite it, if that is possible. `None` if the
    /// documents have no `_id`.
    id: Option<(Range<usize>, Option<Overwrite>)>,
    scratch: Scratch,
}

/// Reused buffers.
#[derive(Default)]
struct Scratch {
    /// The values of an entry, decoded into a document with one field for each.
    values: Vec<u8>,
    /// For each of these values, the position of its field in the index.
    found: Vec<usize>,
}

impl Row {
    /// Returns whether the last document can be used again for this entry: it was built from the same values, and only
    /// `_id` can differ.
    #[inline]
    fn is_made_of(&self, entry: &IndexEntry<'_>) -> bool {
        same(&self.values, entry.values) && same(&self.extras, entry.extras) && !self.document.is_empty()
    }

    /// Builds the document of an entry. Returns `None` if the entry is damaged.
    #[inline]
    fn make(&mut self, entry: &IndexEntry<'_>, shape: &Shape) -> Option<()> {
        if self.is_made_of(entry) && self.put_id(entry.record_key).is_some() {
            return Some(());
        }
        let built = self.build(entry, shape);
        if built.is_none() {
            self.document.clear();
        }
        built
    }

    /// Overwrites the `_id`, if documents have one. Returns `None` if the new one does not fit, because its type or length differs.
    #[inline]
    fn put_id(&mut self, record_key: &[u8]) -> Option<()> {
        let Some((place, overwrite)) = &self.id else { return Some(()) };
        overwrite.as_ref()?.put(record_key, self.document.get_mut(place.clone())?).map(drop)
    }

    /// Builds a document, `_id` first.
    #[inline(never)]
    fn build(&mut self, entry: &IndexEntry<'_>, shape: &Shape) -> Option<()> {
        let Self { document, scratch, .. } = self;
        let (order, bits) = FieldOrder::split(entry.extras)?;
        let mut reader = TypeReader::new(bits);
        let mut decoded = Writer::into_buffer(clear(&mut scratch.values));
        scratch.found.clear();
        let mut rest = entry.values;
        // Decodes in the order of the key, because the type bits are in that order.
        for (number, (name, direction)) in shape.fields.iter().enumerate() {
            if key::decode_into(&mut rest, *direction, &mut reader, name, &mut decoded)? == Presence::Present {
                scratch.found.push(number);
            }
        }
        let id_bits = reader.next_part();
        let mut row = Writer::into_buffer(clear(document));
        if shape.has_id {
            key::decode_into(&mut &*entry.record_key, Direction::Ascending, &mut reader, ID, &mut row)?;
        }
        scratch.values = decoded.finish();
        let decoded = Doc::new(&scratch.values);
        let mut append = |number: usize| {
            let at = scratch.found.iter().position(|&present| present == number);
            if let Some(element) = at.and_then(|at| decoded.elements().nth(at)) {
                row.append(element.name, element.value);
            }
        };
        let wanted = |number: usize| shape.included.contains(&CoveredField::Indexed(number));
        if order.is_empty() {
            (0..shape.fields.len()).filter(|&number| wanted(number)).for_each(&mut append);
        } else {
            order.iter().map(|&number| usize::from(number)).filter(|&number| wanted(number)).for_each(&mut append);
        }
        self.document = row.finish();
        self.id = if shape.has_id { find_id(&self.document, id_bits) } else { None };
        replace(&mut self.values, entry.values);
        replace(&mut self.extras, entry.extras);
        Some(())
    }
}

const ID: &[u8] = b"_id";

/// Returns the position of the value of `_id`, which is the first field, and how to overwrite it with one that has the
/// same type bits.
fn find_id(document: &[u8], bits: &[u8]) -> Option<(Range<usize>, Option<Overwrite>)> {
    let id = Doc::new(document).elements().next()?;
    // The document's length, the type, the name and its terminator.
    let start = 4 + 1 + ID.len() + 1;
    Some((start..start + id.value.bytes().len(), Overwrite::new(id.value.kind(), bits)))
}

/// Empties the buffer and moves it out, with its capacity.
fn clear(buffer: &mut Vec<u8>) -> Vec<u8> {
    let mut buffer = std::mem::take(buffer);
    buffer.clear();
    buffer
}

fn replace(old: &mut Vec<u8>, new: &[u8]) {
    old.clear();
    old.extend_from_slice(new);
}

#[cfg(test)]
mod tests {
    use slate_query::{
        key::{TypeBits, encode_typed, join},
        raw::OwnedValue,
    };

    use super::*;

    const INCLUDED: [CoveredField; 2] = [CoveredField::Id, CoveredField::Indexed(0)];

    fn shape(included: &[CoveredField]) -> Shape {
        let fields = vec![(b"a".as_slice().into(), Direction::Ascending)];
        Shape { fields, has_id: included.contains(&CoveredField::Id), included: included.to_vec() }
    }

    /// Returns the parts of an entry: values, extras, record key.
    fn parts(value: impl Into<bson::Bson>, id: impl Into<bson::Bson>) -> [Vec<u8>; 3] {
        let [mut values, mut extras, mut key] = [(); 3].map(|()| Vec::new());
        let (mut bits, mut id_bits) = (TypeBits::new(), TypeBits::new());
        encode_typed(Some(OwnedValue::from(value.into()).as_value()), &mut values, &mut bits);
        encode_typed(Some(OwnedValue::from(id.into()).as_value()), &mut key, &mut id_bits);
        join(bits.as_bytes(), id_bits.as_bytes(), &mut extras);
        [values, extras, key]
    }

    fn make(
        row: &mut Row,
        [values, extras, record_key]: &[Vec<u8>; 3],
        included: &[CoveredField],
    ) -> Option<bson::Document> {
        row.make(&IndexEntry { values, extras, record_key }, &shape(included))?;
        Some(bson::Document::from_reader(row.document.as_slice()).unwrap())
    }

    #[test]
    fn consecutive_rows_are_built_for_any_ids() {
        let mut row = Row::default();
        let ids = [
            1_i64.into(),
            300_i64.into(),
            (-7_i64).into(),
            i64::MAX.into(),
            1_i64.into(),
            1.into(),
            2.into(),
            2.5.into(),
        ];
        let texts = ["a", "b", "longer", "nul\0", "other", ""].map(bson::Bson::from);
        for id in ids.into_iter().chain(texts).chain([bson::oid::ObjectId::new().into(), bson::Bson::Null]) {
            for value in [bson::Bson::from("same"), "same".into(), 5_i64.into()] {
                let made = make(&mut row, &parts(value.clone(), id.clone()), &INCLUDED).unwrap();
                assert_eq!(made, bson::doc! { "_id": id.clone(), "a": value.clone() });
                let alone = make(&mut Row::default(), &parts(value.clone(), id.clone()), &[CoveredField::Indexed(0)]);
                assert_eq!(alone, Some(bson::doc! { "a": value }));
            }
        }
    }

    #[test]
    fn a_damaged_entry_fails_and_does_not_affect_the_next_rows() {
        let mut row = Row::default();
        let good = |id: i64| (parts("same", id), bson::doc! { "_id": id, "a": "same" });
        for damaged in [&[][..], &[0x00], &[0x40, b'x'], &[0x60, 1]] {
            let (first, included) = good(1);
            assert_eq!(make(&mut row, &first, &INCLUDED), Some(included));
            let [values, extras, _] = parts("same", 2_i64);
            assert_eq!(make(&mut row, &[values, extras, damaged.into()], &INCLUDED), None, "{damaged:?}");
            let (next, included) = good(3);
            assert_eq!(make(&mut row, &next, &INCLUDED), Some(included), "{damaged:?}");
        }
    }
}
