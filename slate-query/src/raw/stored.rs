//! The form in which documents are stored: a field table, then the document.
//!
//! A scan of raw BSON passes every field before the one that it looks for. The table contains a hash byte of each
//! field's name and the field's offset, which leads to the field at once. `docs/format.md` describes the bytes.

use std::ops::Range;

use super::{Doc, Element, Writer, bytes::same, validate::validate_each};
use crate::{Result, work};

/// The field table of a document: for each field, in order, a hash byte of its name (its mark) and its offset,
/// little-endian.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FieldTable<'a>(&'a [[u8; 3]]);

impl FieldTable<'_> {
    pub(super) const NONE: Self = Self(&[]);
}

/// Names to look for together, in one pass over a document. A name's number is its position in the list that the set
/// was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Sorted by mark, then by text.
    names: Box<[Name]>,
    marks: Marks,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    mark: u8,
    text: Box<[u8]>,
    number: usize,
}

/// From this number of names on, one is found by a binary search among those with its hash byte.
const MANY: usize = 64;

/// Appends `document` in the stored form to `out`. Documents of more than 255 fields, of 64 KiB and more, or with a
/// repeated field name get an empty table.
pub fn store(document: Doc<'_>, out: &mut Vec<u8>) {
    reserve(document.bytes(), out);
    let mut table = TableWriter::begin(document, out);
    let mut place = 4;
    for element in document.elements() {
        table.add(element.name, place);
        place += element.size();
    }
    table.finish();
    out.extend_from_slice(document.bytes());
}

/// Writes into `out` (cleared first) a copy of `document` with only these fields, in the document's order and the
/// stored form.
pub(crate) fn store_fields(names: &Names, document: Doc<'_>, out: &mut Vec<u8>) {
    let most = names.names.len();
    let start = if most <= MOST_COPIED { 1 + 3 * most } else { 1 };
    out.clear();
    out.resize(start, 0);
    let mut writer = Writer::into_buffer(std::mem::take(out));
    let entries = if start > 1 && document.has_table() {
        copy_tabulated(names, document, &mut writer)
    } else {
        copy_walked(names, document, start > 1, &mut writer)
    };
    *out = writer.finish();
    if entries < most {
        out.drain(1 + 3 * entries..start);
    }
    if let (Some(head), Ok(entries)) = (out.first_mut(), u8::try_from(entries)) {
        *head = entries;
    }
}

/// Copies the fields of a document with a table, and writes their entries. Returns their number.
fn copy_tabulated(names: &Names, document: Doc<'_>, writer: &mut Writer) -> usize {
    let mut entries = 0;
    for (mark, field) in document.tabulated_fields_of(names) {
        let place = writer.append_field(field);
        write_entry(writer, entries, mark, place);
        entries += 1;
    }
    entries
}

/// Like [`copy_tabulated`], but for any document. Returns 0 if the copy gets no table, because it repeats a name or is too long.
fn copy_walked(names: &Names, document: Doc<'_>, has_space: bool, writer: &mut Writer) -> usize {
    let (mut entries, mut fits, mut seen) = (0, has_space, 0_u64);
    for found in document.fields_of(names) {
        let place = writer.append_field(document.bytes().get(found.place).unwrap_or_default());
        let bit = u32::try_from(found.number).ok().and_then(|number| 1_u64.checked_shl(number)).unwrap_or_default();
        fits = fits && seen & bit == 0 && u16::try_from(place).is_ok();
        seen |= bit;
        if fits {
            write_entry(writer, entries, found.mark, place);
            entries += 1;
        }
    }
    if fits { entries } else { 0 }
}

/// Writes an entry of the table at the start of the writer's buffer.
#[inline]
fn write_entry(writer: &mut Writer, number: usize, mark: u8, place: usize) {
    let [low, high, ..] = place.to_le_bytes();
    if let Some(entry) = writer.written_mut(1 + 3 * number..4 + 3 * number) {
        entry.copy_from_slice(&[mark, low, high]);
    }
}

/// Maximum number of names for which a copy gets a table: the names found so far are bits of one word.
const MOST_COPIED: usize = 64;

/// Reserves space for a document and its table, which takes about a tenth of the document's size.
fn reserve(document: &[u8], out: &mut Vec<u8>) {
    out.reserve(document.len() + document.len() / 4 + 16);
}

/// Does what [`validate`](super::validate()) and [`store`] do, in one pass over the bytes. Calls `visit` with each top-level field.
/// After an error `out` is unchanged.
///
/// # Errors
/// As [`validate`](super::validate()).
pub fn validate_and_store(bytes: &[u8], out: &mut Vec<u8>, visit: impl FnMut(Element<'_>)) -> Result<()> {
    reserve(bytes, out);
    validate_and_tabulate(bytes, out, visit)?;
    out.extend_from_slice(bytes);
    Ok(())
}

/// Like [`validate_and_store`], but appends only the table. The caller stores the document after it.
///
/// # Errors
/// As [`validate`](super::validate()).
pub fn validate_and_tabulate(bytes: &[u8], out: &mut Vec<u8>, mut visit: impl FnMut(Element<'_>)) -> Result<()> {
    let start = out.len();
    let mut table = TableWriter::begin(Doc::new(bytes), out);
    let valid = validate_each(bytes, |place, element| {
        table.add(element.name, place);
        visit(element);
    });
    match valid {
        Ok(()) => table.finish(),
        Err(_) => out.truncate(start),
    }
    valid
}

/// The most fields in a table: their number is stored in a byte.
const MOST: usize = u8::MAX as usize;

/// Writes a document's table, field by field.
struct TableWriter<'o, 'd> {
    document: Doc<'d>,
    out: &'o mut Vec<u8>,
    /// The offset of the table in `out`: of its field count.
    start: usize,
    marks: Marks,
    fields: usize,
    /// Whether the document still fits a table: see [`store`].
    fits: bool,
}

impl<'o, 'd> TableWriter<'o, 'd> {
    fn begin(document: Doc<'d>, out: &'o mut Vec<u8>) -> Self {
        let (start, length) = (out.len(), document.bytes().len());
        out.push(0);
        Self { document, out, start, marks: Marks::default(), fields: 0, fits: u16::try_from(length).is_ok() }
    }

    #[inline]
    fn add(&mut self, name: &[u8], place: usize) {
        let (Ok(place), true) = (u16::try_from(place), self.fits && self.fields < MOST) else {
            self.fits = false;
            return;
        };
        let mark = mark(name);
        if !self.marks.insert(mark) && self.has_twin(mark, name) {
            self.fits = false;
            return;
        }
        let [low, high] = place.to_le_bytes();
        self.out.extend_from_slice(&[mark, low, high]);
        self.fields += 1;
    }

    /// Returns whether an earlier field has this name too: a table is only written for documents without repeated
    /// names.
    #[cold]
    fn has_twin(&self, mark: u8, name: &[u8]) -> bool {
        let (entries, _) = self.out.get(self.start + 1..).unwrap_or_default().as_chunks();
        FieldTable(entries).places_of(mark).any(|(_, place)| self.document.is_named(place, name))
    }

    fn finish(self) {
        match (self.out.get_mut(self.start), u8::try_from(self.fields)) {
            (Some(count), Ok(fields)) if self.fits => *count = fields,
            _ => self.out.truncate(self.start + 1),
        }
    }
}

/// A set of marks: the one-byte hashes of field names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks([u64; 4]);

impl FromIterator<u8> for Marks {
    #[inline]
    fn from_iter<I: IntoIterator<Item = u8>>(each: I) -> Self {
        let mut marks = Self::default();
        for mark in each {
            marks.insert(mark);
        }
        marks
    }
}

impl Marks {
    #[inline]
    pub(crate) fn has(&self, mark: u8) -> bool {
        self.0.get(usize::from(mark / 64)).is_some_and(|word| word & (1 << (mark % 64)) != 0)
    }

    /// Adds a mark. Returns whether the set did not contain it.
    #[inline]
    fn insert(&mut self, mark: u8) -> bool {
        let is_new = !self.has(mark);
        if let Some(word) = self.0.get_mut(usize::from(mark / 64)) {
            *word |= 1 << (mark % 64);
        }
        is_new
    }
}

impl<'a> FieldTable<'a> {
    /// Splits a stored document into its table and its bytes. Both may be empty if the bytes are damaged.
    #[inline]
    pub(super) fn split(stored: &'a [u8]) -> (Self, &'a [u8]) {
        let Some((&fields, rest)) = stored.split_first() else { return Default::default() };
        let Some((table, document)) = rest.split_at_checked(3 * usize::from(fields)) else { return Default::default() };
        let (entries, _) = table.as_chunks();
        (Self(entries), document)
    }

    /// Appends the table in the form in which it begins a stored document.
    pub(super) fn append_to(self, out: &mut Vec<u8>) {
        // A table has at most 255 entries.
        let (fields, entries) = u8::try_from(self.0.len()).map_or((0, &[][..]), |fields| (fields, self.0));
        out.push(fields);
        out.extend_from_slice(entries.as_flattened());
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the mark and the offset of the field with this number.
    #[inline]
    pub(super) fn entry(self, number: usize) -> Option<(u8, usize)> {
        self.0.get(number).map(|entry| (entry[0], place(entry)))
    }

    /// Returns the offset of the last field that begins at the offset `wanted` or before it.
    pub(super) fn last_start(self, wanted: usize) -> Option<usize> {
        let fields = self.0.partition_point(|entry| place(entry) <= wanted);
        self.entry(fields.checked_sub(1)?).map(|(_, start)| start)
    }

    /// Returns the number and the offset of each field whose name has the hash byte `wanted`. Other names can have the
    /// same hash byte, so the caller compares the name.
    #[inline]
    pub(super) fn places_of(self, wanted: u8) -> impl Iterator<Item = (usize, usize)> + use<'a> {
        let marked = self.0.iter().enumerate().filter(move |(_, [mark, ..])| *mark == wanted);
        marked.map(|(number, entry)| (number, place(entry)))
    }

    /// Returns the hash byte and the range of bytes of each field that may have one of the names, in a document that
    /// ends at `end`. The caller compares the names.
    #[inline]
    pub(super) fn spans(self, names: &Names, end: usize) -> impl Iterator<Item = (u8, Range<usize>)> + use<'a, '_> {
        let marked = self.0.iter().enumerate().filter(|(_, [mark, ..])| names.has_mark(*mark));
        marked.map(move |(number, entry)| (entry[0], self.span(number, entry, end)))
    }

    /// Returns the number and the range of bytes of each field whose name has the hash byte `wanted`, in a document
    /// that ends at `end`. The caller compares the name.
    #[inline]
    pub(super) fn spans_of(self, wanted: u8, end: usize) -> impl Iterator<Item = (usize, Range<usize>)> + use<'a> {
        let marked = self.0.iter().enumerate().filter(move |(_, [mark, ..])| *mark == wanted);
        marked.map(move |(number, entry)| (number, self.span(number, entry, end)))
    }

    /// Returns the mark and the range of bytes of the field with this number, in a document that ends at `end`.
    #[inline]
    pub(super) fn marked_span(self, number: usize, end: usize) -> Option<(u8, Range<usize>)> {
        let entry = self.0.get(number)?;
        Some((entry[0], self.span(number, entry, end)))
    }

    /// Returns the range of a field's bytes. A field ends where the next one begins.
    #[inline]
    fn span(self, number: usize, entry: &[u8; 3], end: usize) -> Range<usize> {
        place(entry)..self.0.get(number + 1).map_or(end, place)
    }
}

#[inline]
fn place([_, low, high]: &[u8; 3]) -> usize {
    usize::from(u16::from_le_bytes([*low, *high]))
}

impl Names {
    /// Returns whether one of the names has this hash byte.
    #[inline]
    pub(super) fn has_mark(&self, mark: u8) -> bool {
        self.marks.has(mark)
    }

    /// Returns whether a field, given by its bytes (type, name and value) and the hash byte of its name, has one of the
    /// names.
    #[inline]
    pub(super) fn is_name_of(&self, mark: u8, field: &[u8]) -> bool {
        let named = field.get(1..).unwrap_or_default();
        if self.are_many() {
            return self.number_of(mark, named).is_some();
        }
        let has = |name: &[u8]| {
            named.get(name.len()) == Some(&0) && named.get(..name.len()).is_some_and(|front| same(front, name))
        };
        self.names.iter().any(|name| name.mark == mark && has(&name.text))
    }

    #[inline]
    pub(super) fn are_many(&self) -> bool {
        self.names.len() >= MANY
    }

    /// Returns the number of the name with which these bytes begin, up to a NUL byte; `None` if it is not in the set. `mark` is its hash byte.
    pub(super) fn number_of(&self, mark: u8, named: &[u8]) -> Option<usize> {
        let text = named.split(|byte| *byte == 0).next()?;
        // Of equal names, the first.
        let place = self.names.partition_point(|name| (name.mark, &*name.text) < (mark, text));
        self.names.get(place).filter(|name| *name.text == *text).map(|name| name.number)
    }

    /// Returns the number and the text of each name with this hash byte.
    #[inline]
    pub(super) fn of_mark(&self, mark: u8) -> impl Iterator<Item = (usize, &[u8])> {
        let mut names = &*self.names;
        // A linear search is faster for few names.
        if names.len() > 8 {
            let from = names.partition_point(|name| name.mark < mark);
            names = names.get(from..).unwrap_or_default();
        }
        let of_mark = names.iter().skip_while(move |name| name.mark < mark).take_while(move |name| name.mark == mark);
        of_mark.map(|name| (name.number, &*name.text))
    }
}

impl<'n> FromIterator<&'n [u8]> for Names {
    fn from_iter<I: IntoIterator<Item = &'n [u8]>>(names: I) -> Self {
        let numbered = names.into_iter().enumerate();
        let mut names: Box<[_]> =
            numbered.map(|(number, name)| Name { mark: mark(name), number, text: name.into() }).collect();
        work::sort_by(&mut names, Ord::cmp);
        let marks = names.iter().map(|name| name.mark).collect();
        Self { names, marks }
    }
}

/// Returns a hash of a name in one byte. Names of a document often differ in their length, their last byte or their
/// first byte.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lowest byte of the length is what is wanted")]
pub(crate) fn mark(name: &[u8]) -> u8 {
    match name {
        [first, .., last] => (name.len() as u8).wrapping_mul(0x1d) ^ first.rotate_left(3) ^ last,
        [only] => *only,
        [] => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::{FieldName, Value};

    #[test]
    fn stored_fields_are_the_document_of_these_fields() {
        let mut twice = Writer::new();
        let ints = [1_i32, 2, 3].map(i32::to_le_bytes);
        for (name, int) in ["b", "a", "b"].iter().zip(&ints) {
            twice.append(name.as_bytes(), Value::new(crate::raw::Kind::Int32, int));
        }
        let twice = twice.finish();
        let source = bson::rawdoc! { "a": 1, "long": "x".repeat(70_000), "b": "y", "c": { "d": 2 } };
        let mut tabulated = Vec::new();
        store(Doc::from(&bson::rawdoc! { "c": 1, "x": 2, "b": "y", "a": null }), &mut tabulated);
        let many: Vec<String> = (0..300).map(|n| format!("f{n}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).chain(["b"]).collect();
        for document in [Doc::from(&source), Doc::stored(&tabulated), Doc::new(&twice)] {
            for wanted in [&["c", "a"][..], &["x", "b", "y"], &["x"], &[], &["a", "long", "b"], &many] {
                let names: Names = wanted.iter().map(|name| name.as_bytes()).collect();
                let mut out = vec![7; 10];
                store_fields(&names, document, &mut out);
                let (copy, mut expected) = (Doc::stored(&out), Writer::new());
                for element in document.elements().filter(|element| wanted.contains(&&*element.display_name())) {
                    expected.append(element.name, element.value);
                }
                assert_eq!(copy.bytes(), expected.finish());
                for name in wanted {
                    assert_eq!(copy.get(name), document.get(name));
                    assert_eq!(copy.find(&FieldName::new(name)), document.get(name));
                }
            }
        }
    }

    /// Checking each further field for duplicates would take quadratic time.
    #[test]
    fn a_table_ends_at_the_first_excess_field() {
        let mut wide = bson::RawDocumentBuf::new();
        (0..1_000).for_each(|field| wide.append(bson::raw::CString::try_from(format!("f{field}")).unwrap(), field));
        let (document, mut out) = (Doc::from(&wide), Vec::new());
        let mut table = TableWriter::begin(document, &mut out);
        document.elements().for_each(|field| table.add(field.name, 4));
        assert_eq!((table.fits, table.out.len()), (false, 1 + 3 * MOST));
        table.finish();
        assert_eq!(out, [0]);
    }
}
