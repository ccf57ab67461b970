use bson::{Bson, DateTime, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, Timestamp, cstr, oid::ObjectId};

use super::{Doc, Kind, OwnedValue, SmallBytes, Value, Writer};
use crate::{Code, Error};

impl Value<'_> {
    /// Converts to the `bson` crate's value; `None` for damaged bytes. Types of variable length other than strings are
    /// copied once more on the way.
    pub fn to_bson(self) -> Option<Bson> {
        match self.kind() {
            Kind::Null => Some(Bson::Null),
            Kind::Boolean => self.as_bool().map(Bson::Boolean),
            Kind::Int32 => self.as_i32().map(Bson::Int32),
            Kind::Int64 => self.as_i64().map(Bson::Int64),
            Kind::Double => self.as_f64().map(Bson::Double),
            Kind::String => self.as_str().map(|text| Bson::String(text.into())),
            Kind::ObjectId => self.as_object_id().map(|id| Bson::ObjectId(ObjectId::from_bytes(id))),
            Kind::DateTime => self.as_millis().map(|millis| Bson::DateTime(DateTime::from_millis(millis))),
            Kind::Timestamp => self.as_timestamp().and_then(timestamp),
            Kind::Undefined => Some(Bson::Undefined),
            Kind::MinKey => Some(Bson::MinKey),
            Kind::MaxKey => Some(Bson::MaxKey),
            _ => self.unwrapped(),
        }
    }

    fn unwrapped(self) -> Option<Bson> {
        RawBson::try_from(self).ok()?.try_into().ok()
    }
}

/// Copies the value. [`RawBson::as_raw_bson_ref`] borrows from the copy.
impl TryFrom<Value<'_>> for RawBson {
    type Error = Error;

    /// Fails with `InvalidBSON` (22) for damaged bytes.
    fn try_from(value: Value<'_>) -> Result<Self, Error> {
        let mut writer = Writer::new();
        writer.append(b"", value);
        let document = writer.finish();
        let document = RawDocument::from_bytes(&document).ok().and_then(|document| document.iter().next()?.ok());
        document.map(|(_, value)| value.into()).ok_or_else(|| {
            Error::new(Code::INVALID_BSON, format!("the bytes are not a value of type {}", value.kind().alias()))
        })
    }
}

/// Copies the value.
impl From<RawBsonRef<'_>> for OwnedValue {
    fn from(value: RawBsonRef<'_>) -> Self {
        let mut document = RawDocumentBuf::new();
        document.append(cstr!(""), value);
        Doc::from(&document).values().next().unwrap_or(Value::UNDEFINED).to_owned()
    }
}

impl<'a> TryFrom<Doc<'a>> for &'a RawDocument {
    type Error = Error;

    /// Fails with `InvalidBSON` (22) for damaged bytes.
    fn try_from(document: Doc<'a>) -> Result<Self, Error> {
        RawDocument::from_bytes(document.bytes()).map_err(|error| Error::new(Code::INVALID_BSON, error.to_string()))
    }
}

fn timestamp(timestamp: u64) -> Option<Bson> {
    let (time, increment) = (u32::try_from(timestamp >> 32).ok()?, u32::try_from(timestamp & 0xffff_ffff).ok()?);
    Some(Bson::Timestamp(Timestamp { time, increment }))
}

impl From<&Bson> for OwnedValue {
    /// Encodes the value. A value that cannot be encoded (a name contains a NUL) becomes undefined.
    fn from(value: &Bson) -> Self {
        with_value(value, |value| value.to_owned())
    }
}

/// Calls `visit` with the encoded value. Most scalars are encoded without an allocation. A value that cannot be encoded (a
/// name contains a NUL) becomes undefined.
pub fn with_value<R>(value: &Bson, visit: impl FnOnce(Value<'_>) -> R) -> R {
    let (kind, bytes) = match value {
        Bson::Null => (Kind::Null, &[][..]),
        Bson::Boolean(value) => (Kind::Boolean, &[u8::from(*value)][..]),
        Bson::Int32(value) => (Kind::Int32, &value.to_le_bytes()[..]),
        Bson::Int64(value) => (Kind::Int64, &value.to_le_bytes()[..]),
        Bson::Double(value) => (Kind::Double, &value.to_le_bytes()[..]),
        Bson::ObjectId(id) => (Kind::ObjectId, &id.bytes()[..]),
        Bson::DateTime(date) => (Kind::DateTime, &date.timestamp_millis().to_le_bytes()[..]),
        Bson::String(text) => return visit(string(text).as_value()),
        _ => return visit(wrapped(value).as_value()),
    };
    visit(Value::new(kind, bytes))
}

impl From<Bson> for OwnedValue {
    fn from(value: Bson) -> Self {
        Self::from(&value)
    }
}

fn string(text: &str) -> OwnedValue {
    let Ok(length) = i32::try_from(text.len() + 1) else { return Value::UNDEFINED.to_owned() };
    OwnedValue { kind: Kind::String, bytes: SmallBytes::concat(&[&length.to_le_bytes(), text.as_bytes(), &[0]]) }
}

fn wrapped(value: &Bson) -> OwnedValue {
    let mut document = bson::Document::new();
    document.insert("", value.clone());
    let bytes = document.to_vec().unwrap_or_default();
    Doc::new(&bytes).values().next().unwrap_or(Value::UNDEFINED).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one value of every type but DBPointer, which the `bson` crate cannot create.
    fn every_type() -> bson::Document {
        bson::doc! {
            "null": null, "true": true, "false": false, "int32": -7, "int64": 1_i64 << 40, "double": 2.5, "empty": "",
            "string": "Tromsø", "oid": ObjectId::from_bytes(*b"twelve bytes"), "date": DateTime::from_millis(-1),
            "timestamp": Timestamp { time: u32::MAX, increment: 3 }, "undefined": Bson::Undefined,
            "min": Bson::MinKey, "max": Bson::MaxKey, "array": [1, "a"], "document": { "a": 1 },
            "symbol": Bson::Symbol("s".into()), "code": Bson::JavaScriptCode("f()".into()),
            "scope": bson::JavaScriptCodeWithScope { code: "f()".into(), scope: bson::doc! { "a": 1 } },
            "regex": bson::Regex { pattern: bson::cstr!("a").into(), options: bson::cstr!("i").into() },
            "binary": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2] },
            "decimal": bson::Decimal128::from_bytes([7; 16]),
        }
    }

    #[test]
    fn values_of_every_type_convert_to_bson_and_back() {
        for (name, value) in &every_type() {
            let owned = OwnedValue::from(value);
            assert_eq!(owned, wrapped(value), "{name}");
            assert_eq!(owned.as_value().to_bson().as_ref(), Some(value), "{name}");
            assert_eq!(owned.as_value().unwrapped().as_ref(), Some(value), "{name}");
        }
    }

    #[test]
    fn values_of_every_type_convert_to_raw_bson_and_back() {
        let mut bytes = every_type().to_vec().unwrap();
        let pointer = Value::new(Kind::DbPointer, b"\x02\0\0\0c\0twelve bytes");
        let mut writer = Writer::new();
        writer.extend(Doc::new(&bytes));
        writer.append(b"pointer", pointer);
        bytes = writer.finish();
        let document = <&RawDocument>::try_from(Doc::new(&bytes)).unwrap();
        let mut kinds = std::collections::HashSet::new();
        for (element, field) in Doc::new(&bytes).elements().zip(document.iter()) {
            let (name, raw) = field.unwrap();
            assert_eq!(OwnedValue::from(raw).as_value(), element.value, "{name}");
            assert_eq!(RawBson::try_from(element.value).unwrap().as_raw_bson_ref(), raw, "{name}");
            kinds.insert(element.value.kind());
        }
        assert_eq!(kinds.len(), 21);
    }

    #[test]
    fn damaged_values_do_not_convert() {
        let damaged = Value::new(Kind::Int32, &[1, 2]);
        assert_eq!(damaged.to_bson(), None);
        assert_eq!(RawBson::try_from(damaged).unwrap_err().code(), Code::INVALID_BSON);
        assert_eq!(Value::new(Kind::String, &[3, 0, 0, 0, 0xff, 0xfe, 0]).to_bson(), None);
    }
}
