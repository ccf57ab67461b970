use std::io;

use bson::{Bson, DateTime, Document, RawDocument, bson};

/// Converts a stored document.
///
/// # Errors
/// Fails if it is damaged.
pub(super) fn document(raw: &RawDocument) -> io::Result<Document> {
    Document::try_from(raw).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The dates that ISO 8601 writes with a year of four digits, in milliseconds since 1970.
const ISO_DATES: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_300_799_999;

/// Returns a date in ISO 8601; `None` if its year has not four digits.
pub(super) fn iso_date(date: DateTime) -> Option<String> {
    // The `bson` crate writes every later date as the end of 9999.
    ISO_DATES.contains(&date.timestamp_millis()).then(|| date.try_to_rfc3339_string().ok()).flatten()
}

/// Returns a value as relaxed extended JSON, on one line.
pub(crate) fn relaxed(value: Bson) -> String {
    relaxed_json(value).to_string()
}

/// Returns a value as relaxed extended JSON.
pub(super) fn relaxed_json(mut value: Bson) -> serde_json::Value {
    mark_far_dates(&mut value);
    value.into_relaxed_extjson()
}

/// Replaces dates after the year 9999, which the `bson` crate would write wrongly, by documents
/// `{$date: {$numberLong: …}}`.
fn mark_far_dates(value: &mut Bson) {
    match value {
        Bson::DateTime(date) if date.timestamp_millis() > *ISO_DATES.end() => {
            *value = bson!({ "$date": { "$numberLong": date.timestamp_millis().to_string() } });
        }
        Bson::Document(fields) => fields.iter_mut().for_each(|(_, field)| mark_far_dates(field)),
        Bson::Array(elements) => elements.iter_mut().for_each(mark_far_dates),
        Bson::JavaScriptCodeWithScope(code) => code.scope.iter_mut().for_each(|(_, field)| mark_far_dates(field)),
        _ => {}
    }
}

/// Returns a value as relaxed extended JSON, over several lines.
pub(crate) fn indented(value: Bson) -> String {
    let json = relaxed_json(value);
    serde_json::to_string_pretty(&json).unwrap_or_else(|_| json.to_string())
}

/// Returns a value as canonical extended JSON, on one line. It preserves every type.
pub(crate) fn canonical(value: Bson) -> String {
    value.into_canonical_extjson().to_string()
}

/// Returns a text with a number and the noun that it counts, in singular or plural.
pub(crate) fn counted(number: u64, one: &str, more: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { more })
}

/// Returns a text with a number of documents, such as `1 document`.
pub(crate) fn documents(number: u64) -> String {
    counted(number, "document", "documents")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn far_dates_are_written_as_they_are() {
        let date = |millis| Bson::DateTime(DateTime::from_millis(millis));
        assert_eq!(relaxed(date(253_402_300_799_999)), r#"{"$date":"9999-12-31T23:59:59.999Z"}"#);
        assert_eq!(relaxed(bson!([date(i64::MAX)])), r#"[{"$date":{"$numberLong":"9223372036854775807"}}]"#);
        assert_eq!(relaxed(date(-1)), r#"{"$date":{"$numberLong":"-1"}}"#);
        assert_eq!(iso_date(DateTime::from_millis(253_402_300_800_000)), None);
        assert_eq!(iso_date(DateTime::from_millis(-62_135_596_800_000)).as_deref(), Some("0001-01-01T00:00:00Z"));
    }
}
