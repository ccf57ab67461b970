//! The columns of documents: their fields, in the order of their first appearance.

use std::collections::HashMap;

use bson::{Bson, Document};
use slate_core::Cursor;

use super::{Cells, text};

/// Whether a format needs the columns of all documents before it writes the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    Needed,
    NotNeeded,
}

/// A column of a table in text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) field: String,
    /// The type that all its values have, if its values are written as that type.
    pub(crate) kind: Option<&'static str>,
}

/// Reads all documents for their columns.
pub(super) fn gather(mut cursor: Cursor, cells: Cells) -> crate::failure::Result<Vec<Column>> {
    let mut columns: Vec<Column> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    while cursor.advance()? {
        let Some(raw) = cursor.current() else { continue };
        for (field, value) in text::document(raw)? {
            let kind = kind(&value).filter(|_| cells == Cells::Typed);
            match places.get(&field).and_then(|place| columns.get_mut(*place)) {
                Some(column) if column.kind != kind => column.kind = None,
                Some(_) => {}
                None => {
                    places.insert(field.clone(), columns.len());
                    columns.push(Column { field, kind });
                }
            }
        }
    }
    Ok(columns)
}

/// The type of a value that a header can name, if the value's text is not empty.
fn kind(value: &Bson) -> Option<&'static str> {
    Some(match value {
        Bson::Boolean(_) => "boolean",
        Bson::DateTime(date) if date.try_to_rfc3339_string().is_ok() => "date",
        Bson::Decimal128(_) => "decimal",
        Bson::Double(number) if !number.is_nan() => "double",
        Bson::Int32(_) => "int32",
        Bson::Int64(_) => "int64",
        Bson::ObjectId(_) => "objectId",
        Bson::String(text) if !text.is_empty() => "string",
        _ => return None,
    })
}

/// Adds the fields of a document to those of others.
pub(super) fn add(fields: &mut Vec<String>, document: &Document) {
    for field in document.keys() {
        if !fields.contains(field) {
            fields.push(field.clone());
        }
    }
}
