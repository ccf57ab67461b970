//! The names by which the types of the `bson` crate announce themselves to its own deserializer and serializer.

/// `bson::Uuid`.
pub(super) const UUID: &str = "$__bson_private_uuid";
/// `bson::RawDocument` and `bson::RawDocumentBuf`.
pub(super) const RAW_DOCUMENT: &str = "$__private__bson_RawDocument";
/// `bson::RawArray` and `bson::RawArrayBuf`.
pub(super) const RAW_ARRAY: &str = "$__private__bson_RawArray";
/// `bson::RawBson` and `bson::RawBsonRef`.
pub(super) const RAW_BSON: &str = "$__private__bson_RawBson";
/// `bson::serde_helpers::HumanReadable`.
pub(super) const HUMAN_READABLE: &str = "$__bson_private_human_readable";

/// The prefix of all of these names. Tested first, because few types have such a name.
pub(super) const PREFIX: &str = "$__";
