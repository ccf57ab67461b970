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
        Ok(self.writer.write_record(self.layout.columns.iter().map(name))?)
    }
}

/// A value so that `infer` returns it.
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
        Ok(self.writer.write_record(cells)?)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_header()?;
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use bson::{Decimal128, doc, oid::ObjectId};
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Bson> {
        let leaf = prop_oneof![
            any::<i32>().prop_map(Bson::Int32),
            any::<i64>().prop_map(Bson::Int64),
            (-1e300..1e300).prop_map(Bson::Double),
            any::<bool>().prop_map(Bson::Boolean),
            "[-0-9.,:eE+T \"a{}\\[\\]()n]{0,12}".prop_map(Bson::String),
            any::<String>().prop_map(Bson::String),
            any::<i64>().prop_map(|millis| Bson::DateTime(bson::DateTime::from_millis(millis))),
            (0_i64..2_000_000_000_000).prop_map(|millis| Bson::DateTime(bson::DateTime::from_millis(millis))),
            any::<[u8; 12]>().prop_map(|bytes| Bson::ObjectId(ObjectId::from_bytes(bytes))),
            any::<[u8; 16]>().prop_map(|bytes| Bson::Decimal128(Decimal128::from_bytes(bytes))),
            Just(Bson::Null),
            Just(Bson::MinKey),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Bson::Array),
                prop::collection::vec(("[a-z.]{1,3}", inner), 0..3)
                    .prop_map(|fields| Bson::Document(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_exact_cell_is_read_as_the_same_value(value in value()) {
            let is_nan = matches!(&value, Bson::Decimal128(decimal) if decimal.to_string().contains("NaN"));
            prop_assume!(!is_nan && !format!("{value:?}").contains("Decimal128"));
            let text = exact(&value);
            prop_assert!(!text.is_empty());
            prop_assert_eq!(infer(&text), value);
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
