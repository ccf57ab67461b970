use bson::{Bson, DateTime, RawDocument, Timestamp, oid::ObjectId};

use super::{Doc, Kind, OwnedValue, SmallBytes, Value, Writer};

impl Value<'_> {
    /// The value as the `bson` crate's own; `None` on damaged bytes. Cost: what is neither a number nor a string, nor fixed
    /// in length, is wrapped in a document on the way.
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
            Kind::Document
            | Kind::Array
            | Kind::Binary
            | Kind::Regex
            | Kind::DbPointer
            | Kind::Code
            | Kind::Symbol
            | Kind::CodeWithScope
            | Kind::Decimal128 => self.unwrapped(),
        }
    }

    fn unwrapped(self) -> Option<Bson> {
        let mut writer = Writer::new();
        writer.append(b"", self);
        bson::Document::try_from(RawDocument::from_bytes(&writer.finish()).ok()?).ok()?.remove("")
    }
}

fn timestamp(timestamp: u64) -> Option<Bson> {
    let (time, increment) = (u32::try_from(timestamp >> 32).ok()?, u32::try_from(timestamp & 0xffff_ffff).ok()?);
    Some(Bson::Timestamp(Timestamp { time, increment }))
}

impl From<&Bson> for OwnedValue {
    /// The same value as raw bytes. A value that cannot be written (a name with a NUL inside) becomes undefined.
    fn from(value: &Bson) -> Self {
        with_value(value, |value| value.to_owned())
    }
}

/// Shows the same value as raw bytes, which takes no allocation for most scalars. A value that cannot be written (a name
/// with a NUL inside) becomes undefined.
pub fn with_value<R>(value: &Bson, see: impl FnOnce(Value<'_>) -> R) -> R {
    let (kind, bytes) = match value {
        Bson::Null => (Kind::Null, &[][..]),
        Bson::Boolean(value) => (Kind::Boolean, &[u8::from(*value)][..]),
        Bson::Int32(value) => (Kind::Int32, &value.to_le_bytes()[..]),
        Bson::Int64(value) => (Kind::Int64, &value.to_le_bytes()[..]),
        Bson::Double(value) => (Kind::Double, &value.to_le_bytes()[..]),
        Bson::ObjectId(id) => (Kind::ObjectId, &id.bytes()[..]),
        Bson::DateTime(date) => (Kind::DateTime, &date.timestamp_millis().to_le_bytes()[..]),
        Bson::String(text) => return see(string(text).as_value()),
        Bson::Array(_)
        | Bson::Document(_)
        | Bson::RegularExpression(_)
        | Bson::JavaScriptCode(_)
        | Bson::JavaScriptCodeWithScope(_)
        | Bson::Timestamp(_)
        | Bson::Binary(_)
        | Bson::Symbol(_)
        | Bson::Decimal128(_)
        | Bson::Undefined
        | Bson::MaxKey
        | Bson::MinKey
        | Bson::DbPointer(_) => return see(wrapped(value).as_value()),
    };
    see(Value::new(kind, bytes))
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

    #[test]
    fn values_are_the_same_whether_they_are_wrapped_or_not() {
        let document = bson::doc! {
            "null": null, "true": true, "false": false, "int32": -7, "int64": 1_i64 << 40, "double": 2.5, "empty": "",
            "string": "Tromsø", "oid": ObjectId::from_bytes(*b"twelve bytes"), "date": DateTime::from_millis(-1),
            "timestamp": Timestamp { time: u32::MAX, increment: 3 }, "undefined": Bson::Undefined,
            "min": Bson::MinKey, "max": Bson::MaxKey, "array": [1, "a"], "document": { "a": 1 },
            "symbol": Bson::Symbol("s".into()), "code": Bson::JavaScriptCode("f()".into()),
            "regex": bson::Regex { pattern: bson::cstr!("a").into(), options: bson::cstr!("i").into() },
            "binary": bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2] },
        };
        for (name, value) in &document {
            let owned = OwnedValue::from(value);
            assert_eq!(owned, wrapped(value), "{name}");
            assert_eq!(owned.as_value().to_bson().as_ref(), Some(value), "{name}");
            assert_eq!(owned.as_value().unwrapped().as_ref(), Some(value), "{name}");
        }
    }

    #[test]
    fn damaged_values_are_none() {
        assert_eq!(Value::new(Kind::Int32, &[1, 2]).to_bson(), None);
        assert_eq!(Value::new(Kind::String, &[3, 0, 0, 0, 0xff, 0xfe, 0]).to_bson(), None);
    }
}
