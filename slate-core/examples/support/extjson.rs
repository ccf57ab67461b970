//! MongoDB's extended JSON in files and on command lines: version 2, canonical and relaxed, and version 1.
//!
//! The `bson` crate reads version 2. This module also reads older forms (dates with an offset without colon, dates and
//! longs as plain numbers, `$binary` beside `$type`, and optionally `$regex` as a value), and explains why a value
//! cannot be read.

mod date;

use std::{fmt, str::FromStr};

use bson::{Binary, Bson, DateTime, Document, JavaScriptCodeWithScope, Regex, Timestamp, oid::ObjectId};
use serde_json::{Map, Value};

/// Meaning of `{"$regex": …, "$options": …}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "each example reads one kind of text")]
pub(crate) enum Regexes {
    /// The query operator, in filters.
    Operators,
    /// A regular expression, in data written by version 1.
    Values,
}

/// Describes why a text is not a document.
#[derive(Clone, Debug)]
pub(crate) struct Unreadable(String);

impl Unreadable {
    #[allow(dead_code, reason = "not every example uses it")]
    pub(crate) fn new(why: &str) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

type Result<T> = std::result::Result<T, Unreadable>;

/// Parses a text that contains one document.
pub(crate) fn document(text: &[u8], regexes: Regexes) -> Result<Document> {
    match serde_json::from_slice(text).map_err(|error| Unreadable(format!("not JSON: {error}")))? {
        Value::Object(fields) => plain(fields, regexes),
        other => Err(Unreadable(format!("not a document: {}", shortened(&other)))),
    }
}

/// Converts a value.
pub(crate) fn value(json: Value, regexes: Regexes) -> Result<Bson> {
    Ok(match json {
        Value::Null => Bson::Null,
        Value::Bool(boolean) => Bson::Boolean(boolean),
        Value::String(text) => Bson::String(text),
        Value::Number(number) => match number.as_i64() {
            Some(int) => i32::try_from(int).map_or(Bson::Int64(int), Bson::Int32),
            None => Bson::Double(number.as_f64().ok_or_else(|| Unreadable(format!("{number} is out of range")))?),
        },
        Value::Array(values) => {
            Bson::Array(values.into_iter().map(|element| value(element, regexes)).collect::<Result<_>>()?)
        }
        Value::Object(fields) => match typed(&fields, regexes)? {
            Some(value) => value,
            None => Bson::Document(plain(fields, regexes)?),
        },
    })
}

fn plain(fields: Map<String, Value>, regexes: Regexes) -> Result<Document> {
    fields
        .into_iter()
        .map(|(name, field)| match value(field, regexes) {
            Ok(_) if name.contains('\0') => Err(Unreadable("a field name contains a NUL byte".into())),
            Ok(field) => Ok((name, field)),
            Err(Unreadable(why)) => Err(Unreadable(format!("{name}: {why}"))),
        })
        .collect()
}

/// Converts an object with a type's name in it. Returns `None` for a plain document.
fn typed(fields: &Map<String, Value>, regexes: Regexes) -> Result<Option<Bson>> {
    let mut entries = fields.iter();
    let (first, second, more) = (entries.next(), entries.next(), entries.next());
    let value = match (first, second, more) {
        (Some((name, argument)), None, None) => single(name, argument, regexes),
        (Some((name, argument)), Some((other, second)), None) => match (name.as_str(), other.as_str()) {
            ("$code", "$scope") => scoped(argument, second, regexes).map(Some),
            ("$scope", "$code") => scoped(second, argument, regexes).map(Some),
            ("$binary", "$type") => binary_v1(argument, second).map(Some),
            ("$type", "$binary") => binary_v1(second, argument).map(Some),
            ("$regex", "$options") if regexes == Regexes::Values => regex(argument, second).map(Some),
            ("$options", "$regex") if regexes == Regexes::Values => regex(second, argument).map(Some),
            _ => Ok(None),
        },
        _ => Ok(None),
    };
    value.map_err(|Unreadable(why)| Unreadable(format!("{}: {why}", shortened(&Value::Object(fields.clone())))))
}

fn single(name: &str, argument: &Value, regexes: Regexes) -> Result<Option<Bson>> {
    Ok(Some(match name {
        "$oid" => Bson::ObjectId(parsed::<ObjectId>(argument)?),
        "$numberInt" => Bson::Int32(parsed(argument)?),
        "$numberLong" => Bson::Int64(parsed(argument)?),
        "$numberDouble" => Bson::Double(parsed(argument)?),
        "$numberDecimal" => Bson::Decimal128(parsed(argument)?),
        "$date" => Bson::DateTime(date(argument)?),
        "$timestamp" => timestamp(argument)?,
        "$binary" => binary(argument)?,
        "$uuid" => uuid(text(argument)?)?,
        "$regularExpression" => {
            let [pattern, options] = members(argument, ["pattern", "options"])?;
            regex(pattern, options)?
        }
        "$regex" if regexes == Regexes::Values => regex(argument, &Value::String(String::new()))?,
        "$code" => Bson::JavaScriptCode(text(argument)?.to_owned()),
        "$symbol" => Bson::Symbol(text(argument)?.to_owned()),
        "$dbPointer" => pointer(argument)?,
        "$undefined" => Bson::Undefined,
        "$minKey" => Bson::MinKey,
        "$maxKey" => Bson::MaxKey,
        _ => return Ok(None),
    }))
}

fn text(value: &Value) -> Result<&str> {
    value.as_str().ok_or_else(|| Unreadable("expected a string".into()))
}

/// Converts a type that is written as a string, or by version 1 as a number.
fn parsed<T: FromStr<Err: fmt::Display>>(value: &Value) -> Result<T> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Err(Unreadable("expected a string".into())),
    };
    text.parse().map_err(|error| Unreadable(format!("{error}")))
}

fn members<'a, const N: usize>(value: &'a Value, names: [&str; N]) -> Result<[&'a Value; N]> {
    let fields = value.as_object().filter(|fields| fields.len() == N);
    let found = names.map(|name| fields.and_then(|fields| fields.get(name)));
    if found.contains(&None) {
        return Err(Unreadable(format!("expected a document with {}", names.join(", "))));
    }
    Ok(found.map(|field| field.unwrap_or(&Value::Null)))
}

fn date(argument: &Value) -> Result<DateTime> {
    let millis = match argument {
        Value::String(text) => date::millis(text).ok_or_else(|| Unreadable("not a date".into()))?,
        Value::Number(_) => parsed(argument)?,
        _ => parsed(members(argument, ["$numberLong"])?[0])?,
    };
    Ok(DateTime::from_millis(millis))
}

fn timestamp(argument: &Value) -> Result<Bson> {
    let [time, increment] = members(argument, ["t", "i"])?;
    Ok(Bson::Timestamp(Timestamp { time: parsed(time)?, increment: parsed(increment)? }))
}

fn binary(argument: &Value) -> Result<Bson> {
    let [base64, subtype] = members(argument, ["base64", "subType"])?;
    binary_v1(base64, subtype)
}

/// Converts version 1's `{"$binary": base64, "$type": subtype}`.
fn binary_v1(base64: &Value, subtype: &Value) -> Result<Bson> {
    let subtype = match subtype {
        Value::Number(_) => parsed(subtype)?,
        _ => u8::from_str_radix(text(subtype)?, 16).map_err(|error| Unreadable(format!("the subtype: {error}")))?,
    };
    let binary = Binary::from_base64(text(base64)?, Some(subtype.into()));
    binary.map(Bson::Binary).map_err(|error| Unreadable(format!("{error}")))
}

fn uuid(text: &str) -> Result<Bson> {
    let uuid = bson::Uuid::parse_str(text).map_err(|error| Unreadable(format!("{error}")))?;
    Ok(Bson::Binary(uuid.into()))
}

/// BSON requires a regular expression's options in alphabetical order.
fn regex(pattern: &Value, options: &Value) -> Result<Bson> {
    let mut sorted: Vec<char> = text(options)?.chars().collect();
    sorted.sort_unstable();
    let text = |text: String| text.try_into().map_err(|error| Unreadable(format!("{error}")));
    let (pattern, options) = (text(self::text(pattern)?.to_owned())?, text(sorted.into_iter().collect())?);
    Ok(Bson::RegularExpression(Regex { pattern, options }))
}

fn scoped(code: &Value, scope: &Value, regexes: Regexes) -> Result<Bson> {
    let scope = scope.as_object().ok_or_else(|| Unreadable("the scope is not a document".into()))?;
    let scope = plain(scope.clone(), regexes)?;
    Ok(Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code: text(code)?.to_owned(), scope }))
}

/// A DBPointer can only be constructed from its bytes.
fn pointer(argument: &Value) -> Result<Bson> {
    let [namespace, id] = members(argument, ["$ref", "$id"])?;
    let (namespace, id) = (text(namespace)?, parsed::<ObjectId>(members(id, ["$oid"])?[0])?);
    let name = [&[0x0c, 0][..], &i32::try_from(namespace.len() + 1).unwrap_or_default().to_le_bytes()].concat();
    let body = [&name, namespace.as_bytes(), &[0], &id.bytes(), &[0]].concat();
    let length = i32::try_from(body.len() + 4).unwrap_or_default().to_le_bytes();
    let document = Document::from_reader([&length, body.as_slice()].concat().as_slice());
    document.ok().and_then(|mut document| document.remove("")).ok_or_else(|| Unreadable("not a DBPointer".into()))
}

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
