//! Converts records and values to bison-db's types and back. Dates are milliseconds.

use bison_db::{Document, Value as Bison};
use bson::{Bson, DateTime};
use slate_bench::{Field, Patch, Record, Value};

/// Converts a record to a document, `_id` first.
pub(crate) fn record(record: &Record) -> Document {
    let mut document = Document::with_capacity(1 + Field::ALL.len());
    document.set("_id", record.id);
    for field in Field::ALL {
        document.set(field.name(), value(record.value(field)));
    }
    document
}

/// Converts the fields of a merge, without `_id`.
pub(crate) fn fields(patch: &Patch) -> Vec<(&'static str, Bison)> {
    vec![(Field::ContactsCount.name(), patch.contacts_count.into()), (Field::Notes.name(), patch.notes.clone().into())]
}

/// Converts a value.
pub(crate) fn value(value: Value<'_>) -> Bison {
    match value {
        Value::Null => Bison::Null,
        Value::Int(number) | Value::Date(number) => number.into(),
        Value::Str(string) => string.into(),
        Value::Strs(strings) => strings.iter().map(|string| Bison::from(*string)).collect::<Vec<_>>().into(),
    }
}

/// Converts a bison-db document back.
pub(crate) fn document(document: &Document) -> bson::Document {
    document.iter().map(|(name, value)| (name.to_owned(), bson(name, value))).collect()
}

fn bson(name: &str, value: &Bison) -> Bson {
    match value {
        Bison::Int(number) if name == Field::LastContactedAt.name() => Bson::DateTime(DateTime::from_millis(*number)),
        Bison::Int(number) => (*number).into(),
        Bison::Bool(boolean) => (*boolean).into(),
        Bison::Float(number) => (*number).into(),
        Bison::Str(string) => string.as_str().into(),
        Bison::Array(elements) => elements.iter().map(|element| bson(name, element)).collect(),
        Bison::Object(object) => document(object).into(),
        Bison::Null | Bison::Bytes(_) => Bson::Null,
    }
}
