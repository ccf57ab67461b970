use crate::expression::Needs;
use crate::{
    path::Path,
    raw::{Doc, FieldName, Names, Writer, store_fields},
    work,
};

/// The fields that later stages need. Copies of documents have only these, in the order of the document, because a later
/// projection can return that order.
#[derive(Clone, Debug, Default)]
pub struct Kept(Option<Names>);

impl Kept {
    /// Keeps the needed fields.
    pub fn of(needs: &Needs) -> Self {
        Self(needs.fields().map(|fields| fields.iter().map(|name| name.as_bytes()).collect()))
    }

    /// Keeps the top-level fields that these paths begin with.
    pub fn paths(paths: &[Path]) -> Self {
        let mut needs = Needs::NOTHING;
        paths.iter().for_each(|path| needs.add_path(path));
        Self::of(&needs)
    }

    /// Returns whether whole documents are kept.
    pub fn is_whole(&self) -> bool {
        self.0.is_none()
    }

    /// Like [`copy`](Self::copy), but writes the stored form; see [`store`](crate::raw::store).
    pub fn copy_stored(&self, document: Doc<'_>, out: &mut Vec<u8>) {
        work::spend_copied(document.bytes().len());
        match &self.0 {
            Some(names) => store_fields(names, document, out),
            None => {
                out.clear();
                document.append_stored(out);
            }
        }
    }

    /// Writes into `out` (cleared first) the kept fields of a document.
    #[inline]
    pub fn copy(&self, document: Doc<'_>, out: &mut Vec<u8>) {
        out.clear();
        work::spend_copied(document.bytes().len());
        let Some(names) = &self.0 else { return out.extend_from_slice(document.bytes()) };
        let mut writer = Writer::into_buffer(std::mem::take(out));
        if document.has_table() {
            document.tabulated_fields_of(names).for_each(|(_, field)| writer.append_raw(field));
        } else {
            let bytes = document.bytes();
            document.fields_of(names).for_each(|found| writer.append_raw(bytes.get(found.place).unwrap_or_default()));
        }
        *out = writer.finish();
    }

    /// Writes a copy of a document with a gap for one field, whose value the caller inserts: into `head` the length and
    /// the kept fields before `field`, into `tail` the kept fields after it and the terminator. Both are cleared first.
    /// The document must have the field.
    pub(super) fn split(&self, document: Doc<'_>, field: &FieldName, head: &mut Vec<u8>, tail: &mut Vec<u8>) {
        let bytes = document.bytes();
        let place = document.place_of(field.as_bytes()).unwrap_or_default();
        head.clear();
        tail.clear();
        let Some(names) = &self.0 else {
            head.extend_from_slice(bytes.get(..place.start).unwrap_or_default());
            return tail.extend_from_slice(bytes.get(place.end..).unwrap_or_default());
        };
        head.extend_from_slice(&[0; 4]);
        for found in document.fields_of(names).filter(|found| found.place != place) {
            let part = if found.place.start < place.start { &mut *head } else { &mut *tail };
            part.extend_from_slice(bytes.get(found.place).unwrap_or_default());
        }
        tail.push(0);
    }
}
