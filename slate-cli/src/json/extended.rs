//! Extended JSON, versions 1 and 2: documents that stand for a value of another type.
//!
//! Values inside have been converted already: the argument of `{"$date": {"$numberLong": "5"}}` is an int64 here.

use std::str::FromStr;

use bson::{Binary, Bson, DateTime, Decimal128, Document, JavaScriptCodeWithScope, Regex, Timestamp, oid::ObjectId};

use super::{Regexes, date};

type Result<T> = std::result::Result<T, String>;

/// Returns the value that a document stands for; `None` for a plain document.
///
/// # Errors
/// Fails if a document names a type, but is not a value of it.
pub(super) fn typed(fields: &Document, regexes: Regexes) -> Result<Option<Bson>> {
    let mut entries = fields.iter();
    let (first, second, more) = (entries.next(), entries.next(), entries.next());
    let values = regexes == Regexes::Values;
    match (first, second, more) {
        (Some((name, argument)), None, None) if name.starts_with('$') => {
            single(name, argument, regexes).map_err(|why| format!("{name}: {why}"))
        }
        (Some((name, argument)), Some((other, second)), None) => match (name.as_str(), other.as_str()) {
            ("$code", "$scope") => scoped(argument, second).map(Some),
            ("$scope", "$code") => scoped(second, argument).map(Some),
            ("$binary", "$type") => binary_v1(argument, second).map(Some),
            ("$type", "$binary") => binary_v1(second, argument).map(Some),
            ("$regex", "$options") if values => regex_value(argument, second).map(Some),
            ("$options", "$regex") if values => regex_value(second, argument).map(Some),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

fn single(name: &str, argument: &Bson, regexes: Regexes) -> Result<Option<Bson>> {
    Ok(Some(match name {
        "$oid" => Bson::ObjectId(parsed::<ObjectId>(argument)?),
        "$numberInt" => Bson::Int32(parsed(argument)?),
        "$numberLong" => Bson::Int64(parsed(argument)?),
        "$numberDouble" => Bson::Double(parsed(argument)?),
        "$numberDecimal" => Bson::Decimal128(parsed(argument)?),
        "$date" => Bson::DateTime(date(argument)?),
        "$timestamp" => {
            let [time, increment] = members(argument, ["t", "i"])?;
            Bson::Timestamp(Timestamp { time: parsed(time)?, increment: parsed(increment)? })
        }
        "$binary" => {
            let [base64, subtype] = members(argument, ["base64", "subType"])?;
            binary_v1(base64, subtype)?
        }
        "$uuid" => uuid(text(argument)?)?,
        "$regularExpression" => {
            let [pattern, options] = members(argument, ["pattern", "options"])?;
            regex_value(pattern, options)?
        }
        "$regex" if regexes == Regexes::Values => regex_value(argument, &Bson::String(String::new()))?,
        "$code" => Bson::JavaScriptCode(text(argument)?.to_owned()),
        "$symbol" => Bson::Symbol(text(argument)?.to_owned()),
        "$dbPointer" => pointer(argument)?,
        "$undefined" => Bson::Undefined,
        "$minKey" => Bson::MinKey,
        "$maxKey" => Bson::MaxKey,
        _ => return Ok(None),
    }))
}

fn text(value: &Bson) -> Result<&str> {
    value.as_str().ok_or_else(|| "expected a string".into())
}

/// Converts a value that is written as a string or as a number.
pub(super) fn parsed<T: Written>(value: &Bson) -> Result<T> {
    let text = match value {
        Bson::String(text) => text.clone(),
        Bson::Int32(number) => number.to_string(),
        Bson::Int64(number) => number.to_string(),
        Bson::Double(number) => number.to_string(),
        _ => return Err("expected a number or a string".into()),
    };
    text.parse().map_err(|_| format!("{text:?} is not {}", T::NAME))
}

/// A type whose values can be written as a string.
pub(super) trait Written: FromStr {
    /// What a value is, for errors.
    const NAME: &'static str;
}

macro_rules! written {
    ($($type:ty: $name:literal),*) => {
        $(impl Written for $type {
            const NAME: &'static str = $name;
        })*
    };
}
written! {
    Decimal128: "a decimal of at most 34 digits",
    ObjectId: "an ObjectId, which has 24 hexadecimal digits",
    f64: "a number",
    i32: "an integer of 32 bits",
    i64: "an integer of 64 bits",
    u32: "an integer of 32 bits without a sign",
    u8: "an integer from 0 to 255"
}

fn members<'a, const N: usize>(value: &'a Bson, names: [&str; N]) -> Result<[&'a Bson; N]> {
    let fields = value.as_document().filter(|fields| fields.len() == N);
    let found = names.map(|name| fields.and_then(|fields| fields.get(name)));
    if found.contains(&None) {
        return Err(format!("expected a document with {}", names.join(", ")));
    }
    Ok(found.map(|field| field.unwrap_or(&Bson::Null)))
}

fn date(argument: &Bson) -> Result<DateTime> {
    let millis = match argument {
        Bson::String(text) => date::millis(text).ok_or_else(|| format!("{text:?} is not an ISO 8601 date"))?,
        number => parsed(number)?,
    };
    Ok(DateTime::from_millis(millis))
}

/// Returns a binary value of base64 and a subtype, which is a number or hexadecimal digits.
fn binary_v1(base64: &Bson, subtype: &Bson) -> Result<Bson> {
    let subtype = match subtype {
        Bson::Int32(_) | Bson::Int64(_) => parsed(subtype)?,
        _ => u8::from_str_radix(text(subtype)?, 16).map_err(|error| format!("the subtype: {error}"))?,
    };
    binary(text(base64)?, subtype)
}

pub(super) fn binary(base64: &str, subtype: u8) -> Result<Bson> {
    let binary = Binary::from_base64(base64, Some(subtype.into()));
    binary.map(Bson::Binary).map_err(|_| "the text is not base64".into())
}

pub(super) fn uuid(text: &str) -> Result<Bson> {
    let uuid =
        bson::Uuid::parse_str(text).map_err(|_| format!("{text:?} is not a UUID, which has 32 hexadecimal digits"))?;
    Ok(Bson::Binary(uuid.into()))
}

/// Returns a regular expression with its options in alphabetical order, which BSON requires.
pub(super) fn regex(pattern: &str, options: &str) -> Result<Regex> {
    let mut sorted: Vec<char> = options.chars().collect();
    sorted.sort_unstable();
    let text = |text: String| text.try_into().map_err(|error| format!("{error}"));
    Ok(Regex { pattern: text(pattern.to_owned())?, options: text(sorted.into_iter().collect())? })
}

fn regex_value(pattern: &Bson, options: &Bson) -> Result<Bson> {
    regex(text(pattern)?, text(options)?).map(Bson::RegularExpression)
}

fn scoped(code: &Bson, scope: &Bson) -> Result<Bson> {
    let scope = scope.as_document().ok_or("the scope is not a document")?.clone();
    Ok(Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code: text(code)?.to_owned(), scope }))
}

/// Converts `{"$ref": …, "$id": …}` to a DBPointer, by way of its bytes: the `bson` crate has no constructor.
fn pointer(argument: &Bson) -> Result<Bson> {
    let [namespace, id] = members(argument, ["$ref", "$id"])?;
    let (namespace, id) = (text(namespace)?, id.as_object_id().ok_or("expected an ObjectId in $id")?);
    let name = [&[0x0c, 0][..], &i32::try_from(namespace.len() + 1).unwrap_or_default().to_le_bytes()].concat();
    let body = [&name, namespace.as_bytes(), &[0], &id.bytes(), &[0]].concat();
    let length = i32::try_from(body.len() + 4).unwrap_or_default().to_le_bytes();
    let document = Document::from_reader([&length, body.as_slice()].concat().as_slice());
    document.ok().and_then(|mut document| document.remove("")).ok_or_else(|| "not a DBPointer".into())
}

#[cfg(test)]
mod tests {
    use bson::{bson, doc};

    use super::*;
    use crate::json::{Dialect, document, parser::regex_value, value};

    #[test]
    fn both_versions_are_read() {
        let date = Bson::DateTime(DateTime::from_millis(1_238_569_200_000));
        for (text, expected) in [
            (r#"{"$date": "2009-04-01T00:00:00.000-0700"}"#, date.clone()),
            (r#"{"$date": 1238569200000}"#, date.clone()),
            (r#"{"$date": {"$numberLong": "1238569200000"}}"#, date),
            (r#"{"$numberLong": 5}"#, Bson::Int64(5)),
            (r#"{"$numberDouble": "NaN"}"#, Bson::Double(f64::NAN)),
            (r#"{"$regex": "^a", "$options": "mi"}"#, regex_value("^a", "im")),
            (r#"{"$regularExpression": {"pattern": "^a", "options": ""}}"#, regex_value("^a", "")),
            (r#"{"$binary": "/wo=", "$type": "80"}"#, binary("/wo=", 0x80).unwrap()),
            (r#"{"$binary": {"base64": "/wo=", "subType": "80"}}"#, binary("/wo=", 0x80).unwrap()),
            (
                r#"{"$code": "f()", "$scope": {"a": 1}}"#,
                Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code: "f()".into(), scope: doc! { "a": 1 } }),
            ),
            (r#"{"$undefined": true}"#, Bson::Undefined),
        ] {
            let read = value(text, Dialect::DATA).unwrap();
            assert_eq!(format!("{read:?}"), format!("{expected:?}"), "{text}");
        }
        let pointer =
            value(r#"{"$dbPointer": {"$ref": "a.b", "$id": {"$oid": "507f1f77bcf86cd799439011"}}}"#, Dialect::DATA);
        assert!(matches!(pointer, Ok(Bson::DbPointer(_))));
    }

    #[test]
    fn filters_keep_the_operators_that_are_types_in_data() {
        let filter = document("{ name: { $regex: '^a', $options: 'i' } }", Dialect::QUERY).unwrap();
        assert_eq!(bson!(filter), bson!({ "name": { "$regex": "^a", "$options": "i" } }));
    }

    proptest::proptest! {
        #[test]
        fn canonical_extended_json_is_read_as_what_it_stands_for(value in crate::testing::value()) {
            let text = crate::output::canonical(value);
            let read = super::super::value(&text, Dialect::DATA).unwrap();
            proptest::prop_assert_eq!(crate::output::canonical(read), text);
        }
    }

    #[test]
    fn what_bson_writes_is_read_back() {
        let document = doc! {
            "_id": ObjectId::new(), "i": 1, "l": 1_i64, "d": 0.1, "s": "ä\u{1F600}\"\\\u{7}", "n": Bson::Null, "b": true,
            "date": DateTime::from_millis(-1), "a": [1, { "x": [] }], "t": Timestamp { time: 1, increment: 2 },
            "bin": binary("/wo=", 4).unwrap_or(Bson::Null), "min": Bson::MinKey, "dec": Bson::Decimal128("1E+3".parse().unwrap()),
            "far": DateTime::from_millis(i64::MAX), "sym": Bson::Symbol("x".into()), "re": regex_value("a/b\"", "i"),
        };
        let canonical = Bson::Document(document.clone()).into_canonical_extjson().to_string();
        assert_eq!(super::super::document(&canonical, Dialect::DATA).unwrap(), document);
    }
}
