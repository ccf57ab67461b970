//! `$collStats`: one document about the collection, in place of its documents.

use crate::{
    Code, Error, Result,
    expression::Bindings,
    number::Number,
    pipeline::Stage,
    raw::{Doc, Kind, OwnedValue, Value},
};

/// A parsed `$collStats`.
#[derive(Clone, Debug)]
pub struct CollStats {
    counts: bool,
    scale: Option<u64>,
    counts_scans: bool,
    argument: OwnedValue,
}

/// Fails with 5447000 for an argument that is not a document; `TypeMismatch` (14), 31170 for an option that is not empty, and
/// `IDLUnknownField` (40415); `BadValue` (2) for a scale below 1; `NotImplemented` (238) for `latencyStats` and `numericOnly`.
pub(super) fn parse(argument: Value<'_>, _: &Bindings) -> Result<Stage> {
    let options = argument.as_document().ok_or_else(|| {
        let message = format!("$collStats must take a nested object but found: {}", argument.kind().alias());
        Error::new(Code(5_447_000), message)
    })?;
    let (mut counts, mut scale, mut counts_scans) = (false, None, false);
    for option in options.elements() {
        let name = &*option.display_name();
        let fields = || option.value.as_document().ok_or_else(|| mistyped(name, option.value, "object"));
        match name {
            "count" => counts = empty(name, fields()?)?,
            "queryExecStats" => counts_scans = empty(name, fields()?)?,
            "storageStats" => scale = Some(parse_scale(fields()?)?),
            "latencyStats" => return Err(Error::unsupported(name).at(name)),
            _ => {
                let message = format!("BSON field '$collStats.{name}' is an unknown field.");
                return Err(Error::new(Code::IDL_UNKNOWN_FIELD, message).at(name));
            }
        }
    }
    Ok(Stage::CollStats(CollStats { counts, scale, counts_scans, argument: argument.to_owned() }))
}

/// Returns the scale in the argument of `storageStats`, 1 by default. Refuses `numericOnly: true`; as in MongoDB, other
/// fields are ignored.
fn parse_scale(options: Doc<'_>) -> Result<u64> {
    if options.get("numericOnly").and_then(Value::as_bool) == Some(true) {
        return Err(Error::unsupported("numericOnly").at("storageStats.numericOnly"));
    }
    let Some(scale) = options.get("scale").filter(|scale| scale.kind() != Kind::Null) else { return Ok(1) };
    let path = "storageStats.scale";
    let scale = Number::of(scale).and_then(Number::to_i64_truncating).ok_or_else(|| mistyped(path, scale, "int"))?;
    u64::try_from(scale).ok().filter(|scale| *scale > 0).ok_or_else(|| {
        let message = format!("BSON field 'scale' value must be >= 1, actual value '{scale}'");
        Error::new(Code::BAD_VALUE, message).at(path)
    })
}

fn empty(name: &str, options: Doc<'_>) -> Result<bool> {
    if options.is_empty() {
        return Ok(true);
    }
    Err(Error::new(Code(31_170), format!("expected an empty object, but got {options:?}")).at(name))
}

fn mistyped(path: &str, value: Value<'_>, expected: &str) -> Error {
    let found = value.kind().alias();
    let message = format!("BSON field '$collStats.{path}' is the wrong type '{found}', expected type '{expected}'");
    Error::new(Code::TYPE_MISMATCH, message).at(path)
}

impl CollStats {
    /// Returns whether the document contains `count`, the number of documents.
    pub fn counts(&self) -> bool {
        self.counts
    }

    /// Returns the number by which the sizes in the document are divided; `None` if it has no sizes.
    pub fn scale(&self) -> Option<u64> {
        self.scale
    }

    /// Returns whether the document contains the number of collection scans (`queryExecStats`).
    pub fn counts_scans(&self) -> bool {
        self.counts_scans
    }
}

crate::pipeline::shown_argument!(CollStats);
