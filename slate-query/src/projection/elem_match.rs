use super::output;
use crate::{
    Result,
    filter::Filter,
    raw::{Doc, Value, Writer},
};

/// The first element of a field's array that meets a condition.
#[derive(Clone, Debug)]
pub(super) struct ElemMatch {
    field: Box<str>,
    filter: Box<Filter>,
}

impl ElemMatch {
    pub(super) fn new(field: &str, filter: Box<Filter>) -> Self {
        Self { field: field.into(), filter }
    }

    /// Writes the field with that element alone; where there is none, nothing.
    pub(super) fn write(&self, doc: Doc<'_>, out: &mut Vec<u8>) {
        let Some(Some(position)) = self.filter.positional(doc) else { return };
        let element = doc.get(&self.field).and_then(Value::as_array).and_then(|array| array.values().nth(position));
        if let Some(element) = element {
            output::array(out, self.field.as_bytes(), std::iter::once(element));
        }
    }
}

/// The filter that says at which position of the field's array an element meets the condition: a projection's
/// `{field: {$elemMatch: …}}` read as a filter.
pub(super) fn filter(field: &str, condition: Doc<'_>) -> Result<Box<Filter>> {
    let mut writer = Writer::new();
    writer.open_document(field.as_bytes());
    writer.open_document(b"$elemMatch");
    writer.extend(condition);
    let document = writer.finish();
    Filter::parse(Doc::new(&document)).map(Box::new)
}
