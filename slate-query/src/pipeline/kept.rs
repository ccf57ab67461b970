use super::Needs;
use crate::raw::{Doc, FieldName, Writer};

/// The fields that copies of documents have: those that later stages need.
#[derive(Clone, Debug, Default)]
pub struct Kept(Option<Box<[FieldName]>>);

impl Kept {
    /// Keeps what is needed.
    pub fn of(needs: &Needs) -> Self {
        Self(match needs {
            Needs::Whole => None,
            Needs::Fields(fields) => Some(fields.iter().map(|name| FieldName::new(name)).collect()),
        })
    }

    /// Replaces the content of `out` by the kept fields of a document.
    pub fn copy(&self, document: Doc<'_>, out: &mut Vec<u8>) {
        out.clear();
        let Some(fields) = &self.0 else { return out.extend_from_slice(document.bytes()) };
        let mut writer = Writer::into_buffer(std::mem::take(out));
        let is_kept = |name: &[u8]| fields.iter().any(|kept| kept.as_bytes() == name);
        // In the document's order, which a later projection shows.
        document.elements().filter(|element| is_kept(element.name)).take(fields.len()).for_each(|element| {
            writer.append(element.name, element.value);
        });
        *out = writer.finish();
    }
}
