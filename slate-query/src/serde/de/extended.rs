//! Values that serde's data model has no counterpart for, as maps of extended JSON.

use base64::{Engine, engine::general_purpose::STANDARD};
use bson::oid::ObjectId;
use serde::{
    de::{
        DeserializeSeed, IntoDeserializer, MapAccess, Visitor,
        value::{BorrowedStrDeserializer, I64Deserializer, MapDeserializer},
    },
    forward_to_deserialize_any,
};

use super::{Deserializer, Error, Hint, Result, access::no_value, type_of::Quiet};

/// Returns a map of extended JSON with these entries.
pub(super) fn entries<'de, const N: usize>(entries: [(&'static str, ExtendedNode<'de>); N]) -> Entries<'de, N> {
    MapDeserializer::new(entries.map(|(key, node)| (ExtendedNode::Text(key), node)).into_iter())
}

pub(super) type Entries<'de, const N: usize> =
    MapDeserializer<'de, std::array::IntoIter<(ExtendedNode<'de>, ExtendedNode<'de>), N>, Error>;

/// A key or a value of a map of extended JSON.
#[derive(Debug)]
pub(super) enum ExtendedNode<'de> {
    True,
    One,
    Text(&'de str),
    Owned(String),
    Bytes(&'de [u8]),
    Byte(u8),
    Word(u32),
    Millis(i64),
    /// A date's `{"$numberLong": "…"}`.
    NumberLong(i64),
    ObjectId(&'de [u8; 12], Hint),
    Timestamp(u64),
    Regex(&'de str, &'de str),
    DbPointer(&'de str, &'de [u8; 12], Hint),
    Binary(u8, &'de [u8], Hint),
    Scope(Deserializer<'de>, Hint),
}

impl<'de> ExtendedNode<'de> {
    /// Returns the value of `$oid`.
    pub(super) fn oid(bytes: &'de [u8], hint: Hint) -> Result<Self> {
        Ok(match hint {
            Hint::Raw => Self::Bytes(bytes),
            Hint::Extended => {
                let bytes = bytes.try_into().map_err(|_| Error::damaged())?;
                Self::Owned(ObjectId::from_bytes(bytes).to_hex())
            }
        })
    }

    /// Returns the value of `$date`.
    pub(super) fn date(millis: i64, hint: Hint) -> Self {
        match hint {
            Hint::Raw => Self::Millis(millis),
            Hint::Extended => Self::NumberLong(millis),
        }
    }
}

impl<'de> IntoDeserializer<'de, Error> for ExtendedNode<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> serde::Deserializer<'de> for ExtendedNode<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Self::True => visitor.visit_bool(true),
            Self::One => visitor.visit_i32(1),
            Self::Text(text) => visitor.visit_borrowed_str(text),
            Self::Owned(text) => visitor.visit_string(text),
            Self::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Self::Byte(byte) => visitor.visit_u8(byte),
            Self::Word(word) => visitor.visit_u32(word),
            Self::Millis(millis) => visitor.visit_i64(millis),
            Self::NumberLong(millis) => visitor.visit_map(entries([("$numberLong", Self::Owned(millis.to_string()))])),
            Self::ObjectId(bytes, hint) => visitor.visit_map(entries([("$oid", Self::oid(bytes, hint)?)])),
            Self::Timestamp(timestamp) => {
                let half = |shift: u32| Self::Word(u32::try_from(timestamp >> shift & 0xffff_ffff).unwrap_or_default());
                visitor.visit_map(entries([("t", half(32)), ("i", half(0))]))
            }
            Self::Regex(pattern, options) => {
                visitor.visit_map(entries([("pattern", Self::Text(pattern)), ("options", Self::Text(options))]))
            }
            Self::DbPointer(namespace, id, hint) => {
                visitor.visit_map(entries([("$ref", Self::Text(namespace)), ("$id", Self::ObjectId(id, hint))]))
            }
            Self::Binary(subtype, payload, Hint::Raw) => {
                visitor.visit_map(entries([("subType", Self::Byte(subtype)), ("bytes", Self::Bytes(payload))]))
            }
            Self::Binary(subtype, payload, Hint::Extended) => visitor.visit_map(entries([
                ("subType", Self::Owned(format!("{subtype:02x}"))),
                ("base64", Self::Owned(STANDARD.encode(payload))),
            ])),
            Self::Scope(scope, hint) => scope.visit(visitor, hint),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn is_human_readable(&self) -> bool {
        match self {
            Self::Scope(scope, _) => scope.is_human_readable(),
            _ => false,
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// A date as `{"$date": <milliseconds>}`, for the visitor of the `bson` crate.
#[derive(Debug)]
pub(super) struct Date {
    millis: i64,
    is_read: bool,
}

impl Date {
    pub(super) fn new(millis: i64) -> Self {
        Self { millis, is_read: false }
    }
}

impl<'de> MapAccess<'de> for Date {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if self.is_read {
            return Ok(None);
        }
        seed.deserialize(BorrowedStrDeserializer::new("$date")).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value> {
        if self.is_read {
            return Err(no_value());
        }
        self.is_read = true;
        // The target tries a map and a string first.
        seed.deserialize(I64Deserializer::<Quiet>::new(self.millis)).map_err(serde::de::Error::custom)
    }
}
