//! Types that use each feature of serde and each type of the `bson` crate.

use std::collections::BTreeMap;

use bson::{
    Binary, Bson, DateTime, Decimal128, Document, JavaScriptCodeWithScope, Regex, Timestamp, Uuid, oid::ObjectId,
    serde_helpers,
};
use serde::{Deserialize, Serialize};

/// The names of the fields of the types.
pub(crate) const NAMES: [&str; 16] = [
    "a", "b", "_id", "v", "first", "second", "old", "Unit", "Newtype", "Tuple", "Struct", "t", "c", "$oid", "x", "kind",
];

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct EveryType {
    pub(crate) null: Option<i32>,
    pub(crate) boolean: bool,
    pub(crate) int32: i32,
    pub(crate) int64: i64,
    pub(crate) double: f64,
    pub(crate) string: String,
    pub(crate) oid: ObjectId,
    pub(crate) date: DateTime,
    pub(crate) timestamp: Timestamp,
    pub(crate) undefined: Bson,
    pub(crate) min: Bson,
    pub(crate) max: Bson,
    pub(crate) array: Vec<Bson>,
    pub(crate) document: Document,
    pub(crate) symbol: Bson,
    pub(crate) code: Bson,
    pub(crate) scope: JavaScriptCodeWithScope,
    pub(crate) regex: Regex,
    pub(crate) binary: Binary,
    pub(crate) old: Binary,
    pub(crate) user: Binary,
    pub(crate) uuid: Uuid,
    pub(crate) decimal: Decimal128,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Aliased {
    #[serde(alias = "old", alias = "older")]
    pub(crate) first: i32,
    #[serde(default)]
    pub(crate) second: Option<String>,
    #[serde(skip)]
    pub(crate) skipped: i32,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Denying {
    pub(crate) first: i32,
    pub(crate) second: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Flattened {
    #[serde(rename = "_id", default)]
    pub(crate) id: Option<Bson>,
    #[serde(flatten)]
    pub(crate) inner: Aliased,
    #[serde(flatten)]
    pub(crate) rest: BTreeMap<String, Bson>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum External {
    Unit,
    Newtype(i64),
    Tuple(i32, String),
    Struct { a: i32, b: Option<String> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t")]
pub(crate) enum Internal {
    Unit,
    Newtype(Denying),
    Struct { a: Bson, b: Option<DateTime> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", content = "c")]
pub(crate) enum Adjacent {
    Unit,
    Newtype(ObjectId),
    Tuple(i32, String),
    Struct { a: i8, b: Option<u64> },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Untagged {
    Unit,
    Integer(i64),
    Id(ObjectId),
    Date(DateTime),
    Text(String),
    Numbers(Vec<f64>),
    Struct { a: i32, b: Option<String> },
    Any(Bson),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Unit;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Newtype(pub(crate) Option<Box<Untagged>>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Transparent {
    pub(crate) map: BTreeMap<String, Vec<i16>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Key(pub(crate) String);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Helpers {
    #[serde(with = "serde_helpers::object_id::AsHexString")]
    pub(crate) a: ObjectId,
    #[serde(default)]
    pub(crate) b: Option<serde_helpers::HumanReadable<Adjacent>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Dates {
    #[serde(with = "serde_helpers::datetime::FromI64")]
    pub(crate) a: i64,
    #[serde(with = "serde_helpers::datetime::AsRfc3339String", default = "epoch")]
    pub(crate) b: DateTime,
}

fn epoch() -> DateTime {
    DateTime::from_millis(0)
}

/// Bytes, which serde represents as a sequence of numbers by default.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Bytes;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_byte_buf(Visitor)
    }
}

/// A struct whose field is of type `T`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct A<T> {
    pub(crate) a: T,
    #[serde(default)]
    pub(crate) b: Option<i64>,
}

/// Calls a generic function once for each type that a field may have.
macro_rules! for_each_value_type {
    ($function:ident, $($argument:expr),*) => {
        for_each_written_type! { $function, $($argument),* }
        for_each_written_type! { @each $function ($($argument),*) i128, u128, serde::de::IgnoredAny }
    };
}

/// Calls a generic function once for each type that a field may have and that can be written.
macro_rules! for_each_written_type {
    ($function:ident, $($argument:expr),*) => {
        for_each_written_type! { @each $function ($($argument),*)
            bool, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, char, String, (), Unit, Option<i32>,
            Option<Option<String>>, Vec<i32>, Vec<Bson>, (i32, String), [f64; 2], Box<str>, Bytes,
            std::borrow::Cow<'static, str>, std::collections::BTreeSet<External>, BTreeMap<i32, i32>,
            BTreeMap<char, Bson>, BTreeMap<Key, Bson>, BTreeMap<External, i32>, BTreeMap<ObjectId, i32>,
            BTreeMap<String, String>, Key, Newtype, Transparent, External, Internal, Adjacent, Untagged, Aliased,
            Denying, Flattened, Helpers, Dates, ObjectId, DateTime, bson::Timestamp, bson::Regex, bson::Binary,
            bson::Decimal128, bson::Uuid, bson::DbPointer, bson::JavaScriptCodeWithScope, Document, RawDocumentBuf,
            bson::RawArrayBuf, serde_json::Value, Option<DateTime>, Vec<ObjectId>, std::time::Duration,
            std::net::IpAddr, bson::serde_helpers::HumanReadable<std::net::IpAddr>,
            bson::serde_helpers::HumanReadable<ObjectId>, bson::serde_helpers::HumanReadable<Bson>
        }
    };
    (@each $function:ident $arguments:tt $($type:ty),*) => { $(for_each_written_type!(@one $function $arguments $type);)* };
    (@one $function:ident ($($argument:expr),*) $type:ty) => { $function::<$type>($($argument),*)?; };
}

/// Calls a generic function once for each type that a document may have.
macro_rules! for_each_type {
    ($function:ident, $($argument:expr),*) => {
        $function::<Aliased>($($argument),*)?;
        $function::<Denying>($($argument),*)?;
        $function::<Flattened>($($argument),*)?;
        $function::<External>($($argument),*)?;
        $function::<Internal>($($argument),*)?;
        $function::<Adjacent>($($argument),*)?;
        $function::<Untagged>($($argument),*)?;
        $function::<Helpers>($($argument),*)?;
        $function::<Dates>($($argument),*)?;
        $function::<BTreeMap<String, Bson>>($($argument),*)?;
        $function::<A<i32>>($($argument),*)?;
        $function::<A<Option<String>>>($($argument),*)?;
        $function::<A<External>>($($argument),*)?;
        $function::<A<Internal>>($($argument),*)?;
        $function::<A<Adjacent>>($($argument),*)?;
        $function::<A<Untagged>>($($argument),*)?;
        $function::<A<A<Bson>>>($($argument),*)?;
        $function::<A<Vec<A<DateTime>>>>($($argument),*)?;
        $function::<A<serde_json::Value>>($($argument),*)?;
        $function::<A<bson::Uuid>>($($argument),*)?;
        $function::<Internal>($($argument),*)?;
    };
}

pub(crate) use {for_each_type, for_each_value_type, for_each_written_type};
