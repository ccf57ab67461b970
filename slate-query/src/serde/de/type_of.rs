//! Recognizes visitors that accept a value in a form that is cheaper to produce.

use std::{any::TypeId, fmt, sync::OnceLock};

use bson::Bson;
use serde::{
    Deserialize,
    de::{IgnoredAny, Visitor},
    forward_to_deserialize_any,
};

/// Returns whether `V` is the visitor of [`Bson`], which the `bson` crate uses for all of its types. It accepts an
/// ObjectId as bytes and a date as a number, which saves formatting and parsing text.
pub(super) fn is_bson_visitor<V>() -> bool {
    static VISITOR: OnceLock<Option<TypeId>> = OnceLock::new();
    // The visitor's type is private, but the crate passes it to every deserializer.
    let visitor = VISITOR.get_or_init(|| Bson::deserialize(VisitorType).err().and_then(|Quiet(visitor)| visitor));
    *visitor == Some(typeid::of::<V>())
}

/// Returns whether a value is deserialized as `T` only to be dropped.
pub(super) fn is_ignored<T>() -> bool {
    typeid::of::<T>() == TypeId::of::<IgnoredAny>()
}

/// Fails with the type of the visitor.
struct VisitorType;

impl<'de> serde::Deserializer<'de> for VisitorType {
    type Error = Quiet;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Quiet> {
        Err(Quiet(Some(typeid::of::<V>())))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// An error without a message, for attempts that are expected to fail: it costs no allocation.
#[derive(Debug)]
pub(super) struct Quiet(Option<TypeId>);

impl fmt::Display for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value has another type")
    }
}

impl std::error::Error for Quiet {}

impl serde::de::Error for Quiet {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(None)
    }
}
