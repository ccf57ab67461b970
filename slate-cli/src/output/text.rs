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
    mark(&mut value, far_date);
    value.into_relaxed_extjson()
}

/// Replaces a value, or the values within it, by what `marked` returns for them.
fn mark(value: &mut Bson, marked: fn(&Bson) -> Option<Bson>) {
    if let Some(other) = marked(value) {
        *value = other;
        return;
    }
    match value {
        Bson::Document(fields) => fields.iter_mut().for_each(|(_, field)| mark(field, marked)),
        Bson::Array(elements) => elements.iter_mut().for_each(|element| mark(element, marked)),
        Bson::JavaScriptCodeWithScope(code) => code.scope.iter_mut().for_each(|(_, field)| mark(field, marked)),
        _ => {}
    }
}

/// Returns `{$date: {$numberLong: …}}` for a date after the year 9999, which the `bson` crate would write wrongly.
fn far_date(value: &Bson) -> Option<Bson> {
    let millis = value.as_datetime()?.timestamp_millis();
    (millis > *ISO_DATES.end()).then(|| bson!({ "$date": { "$numberLong": millis.to_string() } }))
}

/// Returns `{$numberDouble: …}` for a double below the normal range, which the `bson` crate would write bare.
fn subnormal(value: &Bson) -> Option<Bson> {
    let number = value.as_f64().filter(|number| number.is_subnormal())?;
    Some(bson!({ "$numberDouble": format!("{number:?}") }))
}

/// Returns a value as relaxed extended JSON, over several lines.
pub(crate) fn indented(value: Bson) -> String {
    let json = relaxed_json(value);
    serde_json::to_string_pretty(&json).unwrap_or_else(|_| json.to_string())
}

/// Returns a value as canonical extended JSON, on one line. It preserves every type.
pub(crate) fn canonical(mut value: Bson) -> String {
    mark(&mut value, subnormal);
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
    use bson::{JavaScriptCodeWithScope, doc};

    use super::*;

    #[test]
    fn canonical_json_wraps_every_double() {
        let code = JavaScriptCodeWithScope { code: String::new(), scope: doc! { "a": 5e-324 } };
        for (value, text) in [
            (bson!(1e-310), r#"{"$numberDouble":"1e-310"}"#),
            (bson!(-5e-324), r#"{"$numberDouble":"-5e-324"}"#),
            (bson!({ "a": [2.2e-308] }), r#"{"a":[{"$numberDouble":"2.2e-308"}]}"#),
            (Bson::JavaScriptCodeWithScope(code), r#"{"$code":"","$scope":{"a":{"$numberDouble":"5e-324"}}}"#),
            (bson!(0.0), r#"{"$numberDouble":"0.0"}"#),
            (bson!(-0.0), r#"{"$numberDouble":"-0.0"}"#),
            (bson!(f64::NAN), r#"{"$numberDouble":"NaN"}"#),
            (bson!(f64::NEG_INFINITY), r#"{"$numberDouble":"-Infinity"}"#),
        ] {
            assert_eq!(canonical(value), text);
        }
        assert_eq!(relaxed(bson!(1e-310)), "1e-310");
    }

    proptest::proptest! {
        #[test]
        fn every_double_is_wrapped_and_read_back(bits in proptest::prelude::any::<u64>(), small in proptest::prelude::any::<bool>()) {
            let number = f64::from_bits(if small { bits & !(0x7ff << 52) } else { bits });
            let text = canonical(Bson::Double(number));
            proptest::prop_assert!(text.starts_with("{\"$numberDouble\":\""), "{}", text);
            let read = crate::json::value(&text, crate::json::Dialect::DATA).unwrap();
            proptest::prop_assert!(read.as_f64().is_some_and(|read| read.to_bits() == number.to_bits() || number.is_nan()));
        }
    }

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
