//! The columns of documents: their fields, in the order of their first appearance.

use std::collections::{HashMap, HashSet};

use bson::{Bson, Document, RawDocument};

use super::{Cells, text};
use crate::{
    endpoint::Rows,
    failure::{Failure, Result},
    input::is_path,
};

/// Maximum number of columns of a table. They are held in memory.
const MAX_COLUMNS: usize = 100_000;

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
pub(super) fn gather(mut documents: Rows, cells: Cells) -> Result<Vec<Column>> {
    let mut gathered = Gathered::new(cells);
    while documents.next(|document| gathered.add(document))?.is_some() {}
    Ok(gathered.columns)
}

/// The columns of the documents that were read.
pub(super) struct Gathered {
    pub(super) columns: Vec<Column>,
    places: HashMap<String, usize>,
    cells: Cells,
}

impl Gathered {
    pub(super) fn new(cells: Cells) -> Self {
        Self { columns: Vec::new(), places: HashMap::new(), cells }
    }

    /// Adds the fields of a document.
    ///
    /// # Errors
    /// Fails if there are too many fields, or if a field of a typed table would not be read back as the same field.
    pub(super) fn add(&mut self, document: &RawDocument) -> Result<()> {
        for (field, value) in text::document(document)? {
            if self.cells == Cells::Typed && is_path(&field) {
                return Err(Failure::new(format!("the field {field:?} cannot be a column that is read back"))
                    .hint("its dot would lead into a document: export without --typed, or to another format"));
            }
            let kind = kind(&value).filter(|_| self.cells == Cells::Typed);
            if let Some(column) = self.places.get(&field).and_then(|place| self.columns.get_mut(*place)) {
                column.kind = column.kind.filter(|known| Some(*known) == kind);
            } else if self.columns.len() < MAX_COLUMNS {
                self.places.insert(field.clone(), self.columns.len());
                self.columns.push(Column { field, kind });
            } else {
                return Err(Failure::new(format!("the documents have more than {MAX_COLUMNS} fields"))
                    .hint("choose fields with --project, or another format"));
            }
        }
        Ok(())
    }
}

/// Returns the name of a value's type in a header; `None` for an empty string, NaN, a date beyond ISO 8601, and other
/// types.
fn kind(value: &Bson) -> Option<&'static str> {
    Some(match value {
        Bson::Boolean(_) => "boolean",
        Bson::DateTime(date) if text::iso_date(*date).is_some() => "date",
        Bson::Decimal128(_) => "decimal",
        Bson::Double(number) if !number.is_nan() => "double",
        Bson::Int32(_) => "int32",
        Bson::Int64(_) => "int64",
        Bson::ObjectId(_) => "objectId",
        Bson::String(text) if !text.is_empty() => "string",
        _ => return None,
    })
}

/// Returns the fields of documents, in the order of their first appearance.
pub(super) fn fields(documents: &[Document]) -> Vec<String> {
    let mut seen = HashSet::new();
    let fields = documents.iter().flat_map(Document::keys);
    fields.filter(|field| seen.insert(field.as_str())).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_table_that_was_imported_is_exported_with_its_id() {
        let mut document: Document = (0..10_000).map(|field| (format!("c{field}"), Bson::Int32(field))).collect();
        document.insert("_id", 1);
        let mut gathered = Gathered::new(Cells::Typed);
        gathered.add(&bson::RawDocumentBuf::try_from(&document).unwrap()).unwrap();
        assert_eq!(gathered.columns.len(), 10_001);
    }
}
