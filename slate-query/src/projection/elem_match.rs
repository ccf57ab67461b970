use super::output;
use crate::{
    Result,
    collation::Collation,
    filter::{Filter, Ties},
    raw::{Doc, Value, Writer},
};

/// Shows the first element of an array that matches a condition.
#[derive(Clone, Debug)]
pub(super) struct ElemMatch {
    field: Box<str>,
    filter: Box<Filter>,
}

impl ElemMatch {
    pub(super) fn new(field: &str, filter: Box<Filter>) -> Self {
        Self { field: field.into(), filter }
    }

    /// Writes the field with only the first matching element; writes nothing if no element matches.
    pub(super) fn write(&self, doc: Doc<'_>, out: &mut Vec<u8>) {
        let Some(Some(position)) = self.filter.positional(doc, Ties::First) else { return };
        let element = doc.get(&self.field).and_then(Value::as_array).and_then(|array| array.values().nth(position));
        if let Some(element) = element {
            output::array(out, self.field.as_bytes(), std::iter::once(element));
        }
    }
}

/// Returns the filter `{field: {$elemMatch: …}}`, which finds the position of the element.
pub(super) fn filter(field: &str, condition: Doc<'_>, collation: Option<&Collation>) -> Result<Box<Filter>> {
    let mut writer = Writer::new();
    writer.open_document(field.as_bytes());
    writer.open_document(b"$elemMatch");
    writer.extend(condition);
    let document = writer.finish();
    Filter::parse_part(Doc::new(&document), collation).map(Box::new)
}
