use std::io::{self, Write};

use bson::{Bson, RawDocument};

use super::{Cells, Column, Layout, Rows, cell, text};
use crate::input::infer;

/// A table with a header and a line per document.
struct Table<'w> {
    writer: csv::Writer<&'w mut dyn Write>,
    layout: &'w Layout,
    header: Header,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Header {
    Missing,
    Written,
}

pub(super) fn begin_csv<'w>(out: &'w mut dyn Write, layout: &'w Layout) -> Box<dyn Rows + 'w> {
    begin(out, layout, b',')
}

pub(super) fn begin_tsv<'w>(out: &'w mut dyn Write, layout: &'w Layout) -> Box<dyn Rows + 'w> {
    begin(out, layout, b'\t')
}

fn begin<'w>(out: &'w mut dyn Write, layout: &'w Layout, delimiter: u8) -> Box<dyn Rows + 'w> {
    let writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    Box::new(Table { writer, layout, header: Header::Missing })
}

impl Table<'_> {
    fn write_header(&mut self) -> io::Result<()> {
        if self.header == Header::Written || self.layout.columns.is_empty() {
            return Ok(());
        }
        self.header = Header::Written;
        let name = |column: &Column| match self.layout.cells {
            Cells::Plain => column.field.clone(),
            Cells::Typed => format!("{}.{}()", column.field, column.kind.unwrap_or("auto")),
        };
        self.writer.write_record(self.layout.columns.iter().map(name)).map_err(failure)
    }
}

/// Returns the I/O error within an error of `csv`, to preserve its kind.
fn failure(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    }
}

/// Returns the text from which `infer` returns this value.
fn exact(value: &Bson) -> String {
    let plain = match value {
        Bson::Null => "null".into(),
        _ => cell::plain(value),
    };
    if !plain.is_empty() && infer(&plain) == *value { plain } else { text::canonical(value.clone()) }
}

impl Rows for Table<'_> {
    fn row(&mut self, document: &RawDocument) -> io::Result<()> {
        self.write_header()?;
        let document = text::document(document)?;
        let cells = self.layout.columns.iter().map(|column| match (document.get(&column.field), self.layout.cells) {
            (None, _) => String::new(),
            (Some(Bson::ObjectId(oid)), Cells::Typed) if column.kind.is_some() => oid.to_hex(),
            (Some(value), Cells::Typed) if column.kind.is_none() => exact(value),
            (Some(value), _) => cell::plain(value),
        });
        self.writer.write_record(cells).map_err(failure)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_header()?;
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;
    use proptest::prelude::*;

    use super::{super::columns::Gathered, *};
    use crate::{input, testing::value};

    fn is_exact(value: &Bson) -> bool {
        // The text of NaNs and of decimals is the same for several encodings of one value.
        let text = format!("{value:?}");
        !text.contains("Decimal128") && !text.contains("NaN")
    }

    proptest! {
        #[test]
        fn an_exact_cell_is_read_as_the_same_value(value in value().prop_filter("exact", is_exact)) {
            let text = exact(&value);
            prop_assert!(!text.is_empty());
            prop_assert_eq!(infer(&text), value);
        }

        #[test]
        fn a_typed_table_is_read_as_the_same_documents(
            values in prop::collection::vec(
                prop::collection::btree_map("[a-c _,\"\n()]{0,2}", value().prop_filter("exact", is_exact), 1..4),
                1..5,
            ),
            delimiter in prop_oneof![Just(b','), Just(b'\t')],
        ) {
            let documents: Vec<bson::Document> = values.into_iter().map(|fields| fields.into_iter().collect()).collect();
            let raw: Vec<_> = documents.iter().map(|document| bson::RawDocumentBuf::try_from(document).unwrap()).collect();
            let mut gathered = Gathered::new(Cells::Typed);
            raw.iter().for_each(|raw| gathered.add(raw).unwrap());
            let layout = Layout { width: 80, columns: gathered.columns, cells: Cells::Typed };
            let mut out = Vec::new();
            let mut rows = begin(&mut out, &layout, delimiter);
            raw.iter().for_each(|raw| rows.row(raw).unwrap());
            rows.finish().unwrap();
            drop(rows);
            let format = input::by_name(if delimiter == b',' { "csv" } else { "tsv" }).unwrap();
            let records = (format.open)(Box::new(io::Cursor::new(out.clone())), &input::InputOptions::default()).unwrap();
            let read: Vec<bson::Document> = records.map(|record| {
                let document = record.unwrap().document.unwrap();
                // All documents of a table have the same order of fields, so the order is not compared.
                let mut fields: Vec<_> = bson::Document::try_from(document.as_ref()).unwrap().into_iter().collect();
                fields.sort_by(|one, other| one.0.cmp(&other.0));
                fields.into_iter().collect()
            }).collect();
            prop_assert_eq!(read, documents, "{}", String::from_utf8_lossy(&out));
        }
    }

    #[test]
    fn cells_are_plain_unless_types_are_asked_for() {
        let write = |cells, columns| {
            let layout = Layout { width: 80, columns, cells };
            let mut out = Vec::new();
            let mut rows = begin_csv(&mut out, &layout);
            let document = doc! { "a": "1", "b": Bson::Null, "c": [1, 2_i64] };
            rows.row(&bson::RawDocumentBuf::try_from(&document).unwrap()).unwrap();
            rows.finish().unwrap();
            drop(rows);
            String::from_utf8(out).unwrap()
        };
        let columns = |kind| ["a", "b", "c"].map(|field| Column { field: field.into(), kind }).to_vec();
        assert_eq!(write(Cells::Plain, columns(None)), "a,b,c\n1,,\"[1,2]\"\n");
        let typed = "a.auto(),b.auto(),c.auto()\n\"\"\"1\"\"\",null,\"[{\"\"$numberInt\"\":\"\"1\"\"},{\"\"$numberLong\"\":\"\"2\"\"}]\"\n";
        assert_eq!(write(Cells::Typed, columns(None)), typed);
        assert!(write(Cells::Typed, columns(Some("string"))).starts_with("a.string(),b.string(),c.string()\n1,,"));
    }
}
