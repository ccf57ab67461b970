use std::ops::Range;

use slate_query::{
    key::{self, Overwrite, Presence, TypeReader},
    pattern::Direction,
    raw::{Doc, Writer, same},
};
use slate_store::View;

use super::{Resources, entries::EntryWalk, meter::Meter};
use crate::{
    Result,
    entry::{Entry, FieldOrder},
    plan::{CoveredField, IndexScan, Stage, Window},
};

/// Documents made of an index's entries: each value as it was stored, type and all, in the document's own order.
pub(crate) struct CoveredRows<V: View> {
    walk: EntryWalk<V>,
    shape: Shape,
    /// The index's.
    name: Box<str>,
    skip: u64,
    left: u64,
    row: Row,
    /// Whether the row is that of an entry the walk stands on.
    stands: bool,
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
        let meter = resources.meter(Stage::IxScan);
        let fields = scan.index.pattern.fields().iter();
        let fields = fields.map(|(path, direction)| (path.as_str().as_bytes().into(), *direction)).collect();
        Self {
            shape: Shape { fields, shows_id: shown.contains(&CoveredField::Id), shown },
            name: scan.index.name.clone(),
            walk: EntryWalk::open(view, scan, &resources.interrupt, meter.same()),
            skip: window.skip,
            left: window.limit.unwrap_or(u64::MAX),
            row: Row::default(),
            stands: false,
            meter,
        }
    }

    /// Apart from what calls it, so that the way there stays short for every kind of rows.
    #[inline(never)]
    pub(super) fn advance(&mut self) -> Result<bool> {
        self.stands = false;
        if self.skip > 0 {
            self.pass_over()?;
        }
        if self.left == 0 || !self.next_entry()? {
            self.left = 0;
            return Ok(false);
        }
        self.left -= 1;
        let Some(entry) = self.walk.current()? else { return Ok(false) };
        self.stands = self.row.make(&entry, &self.shape).is_some();
        if self.stands { Ok(true) } else { Err(Entry::damaged(&self.name)) }
    }

    /// Passes over the rows to be skipped. Apart, as it is done once.
    #[inline(never)]
    fn pass_over(&mut self) -> Result<()> {
        while self.skip > 0 && self.next_entry()? {
            self.skip -= 1;
        }
        Ok(())
    }

    #[inline(always)]
    fn next_entry(&mut self) -> Result<bool> {
        if !self.meter.is_read() {
            return self.walk.advance();
        }
        let start = self.meter.start();
        let more = self.walk.advance()?;
        self.meter.moved(start, more);
        Ok(more)
    }

    #[inline]
    pub(super) fn current(&self) -> Option<&[u8]> {
        self.stands.then_some(self.row.document.as_slice())
    }
}

/// How rows come of entries.
struct Shape {
    /// The index's.
    fields: Vec<(Box<[u8]>, Direction)>,
    shown: Vec<CoveredField>,
    shows_id: bool,
}

/// A row, and what it was made of. Entries of one value stand side by side and differ in their `_id`s only: of their rows,
/// each is the one before it with another `_id` put in.
#[derive(Default)]
struct Row {
    document: Vec<u8>,
    /// Of the entry that it was made of.
    values: Vec<u8>,
    extras: Vec<u8>,
    /// Where the type bits of `_id` lie in the extras.
    id_bits: Range<usize>,
    /// Where the value of `_id` lies in the document, and how another is put there; `None` where it is not shown.
    id: Option<(Range<usize>, Option<Overwrite>)>,
    scratch: Scratch,
}

/// What building a row needs, kept from row to row.
#[derive(Default)]
struct Scratch {
    /// The values of the entry, as a document.
    values: Vec<u8>,
    /// The numbers of the fields that these are of.
    found: Vec<usize>,
    /// The next row.
    document: Vec<u8>,
}

impl Row {
    /// Becomes the row of the entry; `None` where that is damaged.
    #[inline]
    fn make(&mut self, entry: &Entry<'_>, shape: &Shape) -> Option<()> {
        let is_like = same(&self.values, entry.values) && same(&self.extras, entry.extras) && !self.document.is_empty();
        if is_like { self.put_id(entry.record_key) } else { self.build(entry, shape) }
    }

    #[inline]
    fn put_id(&mut self, record_key: &[u8]) -> Option<()> {
        let Some((place, overwrite)) = &self.id else { return Some(()) };
        let value = self.document.get_mut(place.clone())?;
        if overwrite.and_then(|overwrite| overwrite.put(record_key, value)).is_some() {
            return Some(());
        }
        let put = self.put_other_id(record_key);
        if put.is_none() {
            // No row comes of this one.
            self.document.clear();
        }
        put
    }

    /// The same, where `_id` is of another type or length than that of the row before.
    #[cold]
    fn put_other_id(&mut self, record_key: &[u8]) -> Option<()> {
        let (place, _) = self.id.take()?;
        let mut document = Writer::into_buffer(clear(&mut self.scratch.document));
        let bits = self.extras.get(self.id_bits.clone())?;
        let mut reader = TypeReader::new(bits);
        key::decode_into(&mut &*record_key, Direction::Ascending, &mut reader, ID, &mut document)?;
        let fields = self.document.get(place.end..)?.split_last()?.1;
        document.append_raw(fields);
        self.scratch.document = document.finish();
        std::mem::swap(&mut self.document, &mut self.scratch.document);
        self.id = find_id(&self.document, bits);
        Some(())
    }

    /// The document, `_id` in front. Apart, so that what most rows take stays small.
    #[inline(never)]
    fn build(&mut self, entry: &Entry<'_>, shape: &Shape) -> Option<()> {
        let Self { document, scratch, .. } = self;
        let (order, bits) = FieldOrder::split(entry.extras)?;
        let mut reader = TypeReader::new(bits);
        let mut decoded = Writer::into_buffer(clear(&mut scratch.values));
        scratch.found.clear();
        let mut rest = entry.values;
        // Values must be decoded in the key's order: their type bits are read on the way.
        for (number, (name, direction)) in shape.fields.iter().enumerate() {
            if key::decode_into(&mut rest, *direction, &mut reader, name, &mut decoded)? == Presence::Present {
                scratch.found.push(number);
            }
        }
        let id_bits = reader.next_part();
        let mut row = Writer::into_buffer(clear(document));
        if shape.shows_id {
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
        let wanted = |number: usize| shape.shown.contains(&CoveredField::Indexed(number));
        if order.is_empty() {
            (0..shape.fields.len()).filter(|&number| wanted(number)).for_each(&mut append);
        } else {
            order.iter().map(|&number| usize::from(number)).filter(|&number| wanted(number)).for_each(&mut append);
        }
        self.document = row.finish();
        self.id = if shape.shows_id { find_id(&self.document, id_bits) } else { None };
        self.id_bits = entry.extras.len() - id_bits.len()..entry.extras.len();
        replace(&mut self.values, entry.values);
        replace(&mut self.extras, entry.extras);
        Some(())
    }
}

const ID: &[u8] = b"_id";

/// Where the value of `_id` lies, which is the first field, and how another with the same type bits is put there.
fn find_id(document: &[u8], bits: &[u8]) -> Option<(Range<usize>, Option<Overwrite>)> {
    let id = Doc::new(document).elements().next()?;
    // The document's length, the type, the name and its terminator.
    let start = 4 + 1 + ID.len() + 1;
    Some((start..start + id.value.bytes().len(), Overwrite::new(id.value.kind(), bits)))
}

/// The buffer, without what was in it.
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

    const SHOWN: [CoveredField; 2] = [CoveredField::Id, CoveredField::Indexed(0)];

    fn shape(shown: &[CoveredField]) -> Shape {
        let fields = vec![(b"a".as_slice().into(), Direction::Ascending)];
        Shape { fields, shows_id: shown.contains(&CoveredField::Id), shown: shown.to_vec() }
    }

    /// The parts of an entry: values, extras, record key.
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
        shown: &[CoveredField],
    ) -> Option<bson::Document> {
        row.make(&Entry { values, extras, record_key }, &shape(shown))?;
        Some(bson::Document::from_reader(row.document.as_slice()).unwrap())
    }

    #[test]
    fn rows_follow_on_each_other_whatever_their_ids_are() {
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
                let made = make(&mut row, &parts(value.clone(), id.clone()), &SHOWN).unwrap();
                assert_eq!(made, bson::doc! { "_id": id.clone(), "a": value.clone() });
                let alone = make(&mut Row::default(), &parts(value.clone(), id.clone()), &[CoveredField::Indexed(0)]);
                assert_eq!(alone, Some(bson::doc! { "a": value }));
            }
        }
    }

    #[test]
    fn a_damaged_entry_gives_no_row_and_leaves_the_next_ones_whole() {
        let mut row = Row::default();
        let good = |id: i64| (parts("same", id), bson::doc! { "_id": id, "a": "same" });
        for damaged in [&[][..], &[0x00], &[0x40, b'x'], &[0x60, 1]] {
            let (first, shown) = good(1);
            assert_eq!(make(&mut row, &first, &SHOWN), Some(shown));
            let [values, extras, _] = parts("same", 2_i64);
            assert_eq!(make(&mut row, &[values, extras, damaged.into()], &SHOWN), None, "{damaged:?}");
            let (next, shown) = good(3);
            assert_eq!(make(&mut row, &next, &SHOWN), Some(shown), "{damaged:?}");
        }
    }
}
