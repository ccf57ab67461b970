//! Converts records to JSON. Dates become milliseconds since 1970.

use bson::{Bson, DateTime, Document};
use serde_json::{Map, Value as Json};
use slate_bench_harness::Result;

use crate::{Change, Field, Patch, Record, Value};

impl Record {
    /// Returns the record as JSON, `_id` first.
    pub fn to_json(&self) -> Json {
        let fields = Field::ALL.iter().map(|field| (field.name().into(), to_json(self.value(*field))));
        Json::Object(std::iter::once(("_id".into(), self.id.into())).chain(fields).collect())
    }
}

impl Patch {
    /// Returns the fields as JSON, `_id` first.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("_id".into(), self.id.into());
        object.insert(Field::ContactsCount.name().into(), self.contacts_count.into());
        object.insert(Field::Notes.name().into(), self.notes.clone().into());
        Json::Object(object)
    }
}

impl Change {
    /// Returns the write as JSON, `_id` first.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Whole(record) => record.to_json(),
            Self::Fields(patch) => patch.to_json(),
        }
    }
}

fn to_json(value: Value<'_>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Int(number) | Value::Date(number) => number.into(),
        Value::Str(string) => string.into(),
        Value::Strs(strings) => strings.iter().copied().collect(),
    }
}

/// Parses a JSON text into a document that can be compared with a record.
///
/// # Errors
/// Fails if the text is not an object.
pub fn document(text: &str) -> Result<Document> {
    let object: Map<String, Json> = serde_json::from_str(text)?;
    Ok(object.into_iter().map(|(name, value)| (name.clone(), from_json(&name, value))).collect())
}

/// Converts the JSON value of the field `name`: a number in a date's field becomes a date, an object null.
pub fn from_json(name: &str, value: Json) -> Bson {
    match value {
        Json::Number(number) if name == Field::LastContactedAt.name() => {
            number.as_i64().map_or(Bson::Null, |date| Bson::DateTime(DateTime::from_millis(date)))
        }
        Json::Number(number) => number.as_i64().map_or_else(|| number.as_f64().into(), Bson::Int64),
        Json::String(string) => Bson::String(string),
        Json::Array(elements) => elements.into_iter().map(|element| from_json(name, element)).collect(),
        Json::Bool(boolean) => Bson::Boolean(boolean),
        Json::Null | Json::Object(_) => Bson::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check_document;

    #[test]
    fn a_record_is_the_same_after_a_round_through_json() {
        for id in 0..100 {
            let record = Record::new(5, 2, id, 0);
            let document = document(&record.to_json().to_string()).unwrap();
            assert_eq!(check_document(&document, &record, None), Ok(()));
        }
    }
}
