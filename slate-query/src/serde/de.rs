use serde::{
    Deserialize,
    de::{Visitor, value::BorrowedStrDeserializer},
    forward_to_deserialize_any,
};

pub use self::document::deserialize_document;
use self::{
    access::{Fields, Items, Variant},
    extended::{ExtendedNode, entries},
    known_fields::KnownFields,
};
use super::{Error, newtype, readability::Readability};
use crate::raw::{Doc, Kind, MAX_DEPTH, Value};

mod access;
mod document;
mod extended;
mod known_fields;
mod type_of;

type Result<T, E = Error> = std::result::Result<T, E>;

/// Deserializes a document, which must be valid BSON.
///
/// # Errors
/// Fails if the document is not a value of the type; the error contains the path of the field at fault.
pub fn deserialize<'de, T: Deserialize<'de>>(document: Doc<'de>) -> Result<T> {
    T::deserialize(Deserializer { kind: Kind::Document, bytes: document, context: Context::default() })
}

/// Deserializes a value of any type, which must be valid BSON.
///
/// # Errors
/// As [`deserialize`].
pub fn deserialize_value<'de, T: Deserialize<'de>>(value: Value<'de>) -> Result<T> {
    T::deserialize(Deserializer::new(value, Context::default()))
}

/// The state that a value's deserializer inherits from that of the enclosing document.
#[derive(Clone, Copy, Debug, Default)]
struct Context {
    form: Readability,
    /// How many documents and arrays are around the value.
    depth: usize,
}

impl Context {
    /// Returns the context of the values in a document or an array; fails if they nest deeper than [`MAX_DEPTH`].
    #[inline]
    fn inside(self) -> Result<Self> {
        if self.depth < MAX_DEPTH { Ok(Self { depth: self.depth + 1, ..self }) } else { Err(Error::too_deep()) }
    }
}

/// How types without a counterpart in serde's data model are presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    /// As maps of extended JSON, such as `{"$oid": "…"}`: what any other type can read.
    Extended,
    /// As what the `bson` crate's raw types expect: documents and binaries are lent.
    Raw,
}

/// Deserializes one value.
#[derive(Clone, Copy, Debug)]
struct Deserializer<'de> {
    kind: Kind,
    /// The value's bytes. A stored record has a field table, too.
    bytes: Doc<'de>,
    context: Context,
}

impl<'de> Deserializer<'de> {
    #[inline]
    fn new(value: Value<'de>, context: Context) -> Self {
        Self { kind: value.kind(), bytes: Doc::new(value.bytes()), context }
    }

    #[inline]
    fn value(self) -> Value<'de> {
        Value::new(self.kind, self.bytes.bytes())
    }

    /// Returns the text of a string, symbol or code.
    #[inline]
    fn text(self) -> Result<&'de str> {
        self.value().text().and_then(utf8).ok_or_else(Error::damaged)
    }

    #[inline]
    fn fixed<const N: usize>(self) -> Result<[u8; N]> {
        self.bytes.bytes().try_into().map_err(|_| Error::damaged())
    }

    #[inline]
    fn int32(self) -> Result<i32> {
        self.fixed().map(i32::from_le_bytes)
    }

    #[inline]
    fn int64(self) -> Result<i64> {
        self.fixed().map(i64::from_le_bytes)
    }

    #[inline]
    fn double(self) -> Result<f64> {
        self.fixed().map(f64::from_le_bytes)
    }

    #[inline]
    fn boolean(self) -> Result<bool> {
        self.fixed().map(|[byte]| byte != 0)
    }

    #[inline]
    fn fields(self) -> Result<Fields<'de>> {
        Ok(Fields::new(self.bytes, self.context.inside()?))
    }

    #[inline]
    fn items(self) -> Result<Items<'de>> {
        Ok(Items::new(self.bytes, self.context.inside()?))
    }

    /// Visits the value by its type.
    fn visit<V: Visitor<'de>>(self, visitor: V, hint: Hint) -> Result<V::Value> {
        match self.kind {
            Kind::String => visitor.visit_borrowed_str(self.text()?),
            Kind::Int32 => visitor.visit_i32(self.int32()?),
            Kind::Int64 => visitor.visit_i64(self.int64()?),
            Kind::Double => visitor.visit_f64(self.double()?),
            Kind::Boolean => visitor.visit_bool(self.boolean()?),
            Kind::Null => visitor.visit_unit(),
            Kind::Document if hint == Hint::Extended => visitor.visit_map(self.fields()?),
            Kind::Array if hint == Hint::Extended => visitor.visit_seq(self.items()?),
            _ => self.visit_other(visitor, hint),
        }
    }

    /// Visits a generic binary (subtype 0) as bytes, and a value that serde's data model has no counterpart for as a
    /// map of extended JSON. The keys and the values are those that the `bson` crate's types read.
    #[inline(never)]
    fn visit_other<V: Visitor<'de>>(self, visitor: V, hint: Hint) -> Result<V::Value> {
        let damaged = Error::damaged;
        match self.kind {
            Kind::Document => {
                visitor.visit_map(entries([(newtype::RAW_DOCUMENT, ExtendedNode::Bytes(self.bytes.bytes()))]))
            }
            Kind::Array => visitor.visit_map(entries([(newtype::RAW_ARRAY, ExtendedNode::Bytes(self.bytes.bytes()))])),
            Kind::Binary => match self.value().as_binary().ok_or_else(damaged)? {
                (0, payload) => visitor.visit_borrowed_bytes(payload),
                (subtype, payload) => {
                    let payload = without_inner_length(subtype, payload);
                    visitor.visit_map(entries([("$binary", ExtendedNode::Binary(subtype, payload, hint))]))
                }
            },
            Kind::ObjectId => {
                let hint = if type_of::is_bson_visitor::<V>() { Hint::Raw } else { hint };
                visitor.visit_map(entries([("$oid", ExtendedNode::oid(self.bytes.bytes(), hint)?)]))
            }
            Kind::DateTime if hint == Hint::Extended && type_of::is_bson_visitor::<V>() => {
                visitor.visit_map(extended::Date::new(self.int64()?))
            }
            Kind::DateTime => visitor.visit_map(entries([("$date", ExtendedNode::date(self.int64()?, hint))])),
            Kind::Decimal128 => {
                visitor.visit_map(entries([("$numberDecimalBytes", ExtendedNode::Bytes(self.bytes.bytes()))]))
            }
            Kind::Timestamp => {
                let timestamp = self.value().as_timestamp().ok_or_else(damaged)?;
                visitor.visit_map(entries([("$timestamp", ExtendedNode::Timestamp(timestamp))]))
            }
            Kind::Regex => {
                let (pattern, options) = self.value().as_regex().ok_or_else(damaged)?;
                let (pattern, options) = utf8(pattern).zip(utf8(options)).ok_or_else(damaged)?;
                visitor.visit_map(entries([("$regularExpression", ExtendedNode::Regex(pattern, options))]))
            }
            Kind::DbPointer => {
                let (namespace, _) = self.value().as_db_pointer().ok_or_else(damaged)?;
                let (namespace, (_, id)) =
                    utf8(namespace).zip(self.bytes.bytes().split_last_chunk::<12>()).ok_or_else(damaged)?;
                visitor.visit_map(entries([("$dbPointer", ExtendedNode::DbPointer(namespace, id, hint))]))
            }
            Kind::Code => visitor.visit_map(entries([("$code", ExtendedNode::Text(self.text()?))])),
            Kind::Symbol => visitor.visit_map(entries([("$symbol", ExtendedNode::Text(self.text()?))])),
            Kind::CodeWithScope => {
                let (code, scope) = self.value().as_code_with_scope().ok_or_else(damaged)?;
                let scope = Deserializer { kind: Kind::Document, bytes: scope, context: self.context.inside()? };
                let code = ExtendedNode::Text(utf8(code).ok_or_else(damaged)?);
                visitor.visit_map(entries([("$code", code), ("$scope", ExtendedNode::Scope(scope, hint))]))
            }
            Kind::Undefined => visitor.visit_map(entries([("$undefined", ExtendedNode::True)])),
            Kind::MaxKey => visitor.visit_map(entries([("$maxKey", ExtendedNode::One)])),
            Kind::MinKey => visitor.visit_map(entries([("$minKey", ExtendedNode::One)])),
            Kind::String | Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Boolean | Kind::Null => {
                self.visit(visitor, hint)
            }
        }
    }

    #[cold]
    fn unexpected<T>(self, expected: &str) -> Result<T> {
        Err(Error::new(format!("expected {expected}, found a value of type {}", self.kind.alias())))
    }

    /// Visits a value for one of the types of the `bson` crate, which is recognized by its name.
    #[inline(never)]
    fn visit_private<V: Visitor<'de>>(self, name: &str, visitor: V) -> Result<V::Value> {
        match (name, self.kind) {
            (newtype::UUID, Kind::Binary) => match self.value().as_binary() {
                // The type accepts the bare bytes, too, which need not be encoded in base64.
                Some((4, payload)) => visitor.visit_borrowed_bytes(payload),
                _ => self.unexpected("a UUID"),
            },
            (newtype::RAW_DOCUMENT, Kind::Document) | (newtype::RAW_ARRAY, Kind::Array) | (newtype::RAW_BSON, _) => {
                self.visit(visitor, Hint::Raw)
            }
            (newtype::RAW_DOCUMENT, _) => self.unexpected("a document"),
            (newtype::RAW_ARRAY, _) => self.unexpected("an array"),
            (newtype::UUID, _) => self.visit(visitor, Hint::Extended),
            (newtype::HUMAN_READABLE, _) => {
                let context = Context { form: Readability::HumanReadable, ..self.context };
                visitor.visit_newtype_struct(Self { context, ..self })
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }
}

/// Implements a method for a type that is usually stored as one of a few types, which are tested before all others.
macro_rules! usually {
    ($($method:ident: $($kind:ident => $visit:ident($value:ident)),*;)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match self.kind {
                $(Kind::$kind => visitor.$visit(self.$value()?),)*
                _ => self.visit_other_than_usual(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> {
    #[inline(never)]
    fn visit_other_than_usual<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit(visitor, Hint::Extended)
    }
}

impl<'de> serde::Deserializer<'de> for Deserializer<'de> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit(visitor, Hint::Extended)
    }

    usually! {
        deserialize_str: String => visit_borrowed_str(text);
        deserialize_string: String => visit_borrowed_str(text);
        deserialize_bool: Boolean => visit_bool(boolean);
        deserialize_i8: Int32 => visit_i32(int32), Int64 => visit_i64(int64);
        deserialize_i16: Int32 => visit_i32(int32), Int64 => visit_i64(int64);
        deserialize_i32: Int32 => visit_i32(int32), Int64 => visit_i64(int64);
        deserialize_i64: Int64 => visit_i64(int64), Int32 => visit_i32(int32);
        deserialize_u8: Int32 => visit_i32(int32), Int64 => visit_i64(int64);
        deserialize_u16: Int32 => visit_i32(int32), Int64 => visit_i64(int64);
        deserialize_u32: Int64 => visit_i64(int64), Int32 => visit_i32(int32);
        deserialize_u64: Int64 => visit_i64(int64), Int32 => visit_i32(int32);
        deserialize_f32: Double => visit_f64(double);
        deserialize_f64: Double => visit_f64(double);
        deserialize_seq: Array => visit_seq(items);
        deserialize_map: Document => visit_map(fields);
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.kind == Kind::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    #[inline]
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.kind == Kind::ObjectId {
            visitor.visit_borrowed_bytes(self.bytes.bytes())
        } else {
            self.deserialize_any(visitor)
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if self.kind == Kind::Document && !fields.is_empty() {
            visitor.visit_map(KnownFields::new(self.bytes, fields, self.context.inside()?))
        } else {
            self.visit_other_than_usual(visitor)
        }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value> {
        if name.starts_with(newtype::PREFIX) {
            self.visit_private(name, visitor)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.kind {
            Kind::String => visitor.visit_enum(BorrowedStrDeserializer::new(self.text()?)),
            Kind::Document => visitor.visit_enum(Variant::new(self.bytes, self.context.inside()?)),
            _ => self.unexpected("a string or a document"),
        }
    }

    /// Decodes nothing.
    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        self.context.form == Readability::HumanReadable
    }

    forward_to_deserialize_any! { char byte_buf unit unit_struct identifier tuple tuple_struct }
}

/// Returns the bytes as text, if they are UTF-8, as they are in a document that was validated.
#[inline]
fn utf8(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// Returns the payload of a binary without the inner length that the obsolete subtype 2 has.
fn without_inner_length(subtype: u8, payload: &[u8]) -> &[u8] {
    if subtype == 2 { payload.get(4..).unwrap_or_default() } else { payload }
}
