use slate_query::{
    Code,
    number::Number,
    raw::{Doc, Value, validate},
};

use super::fields::{Fields, owned};
use crate::{Error, Hint, Result};

/// Reads a hint: an index's name or keys, `{$hint: name}`, or `{$natural: ±1}`. An empty document counts as no hint.
///
/// # Errors
/// Fails with `FailedToParse` (9) on other types including null; with `BadValue` (2) on an invalid `$natural`.
pub(super) fn take(fields: &mut Fields<'_>) -> Result<Option<Hint>> {
    fields.any("hint").map(parse).transpose().map(Option::flatten)
}

fn parse(hint: Value<'_>) -> Result<Option<Hint>> {
    if let Some(name) = hint.as_str() {
        return Ok(Some(Hint::Name(name.into())));
    }
    let Some(keys) = hint.as_document() else {
        return Err(Error::invalid(Code::FAILED_TO_PARSE, "Hint must be a string or an object").at("hint"));
    };
    let keys = validate(keys.bytes())?;
    match keys.elements().next() {
        None => Ok(None),
        Some(first) if first.name == b"$natural" => natural(keys, first.value).map(Some),
        Some(first) if first.name == b"$hint" && first.value.as_str().is_some() => parse(first.value),
        Some(_) => Ok(Some(Hint::Keys(owned(keys)?))),
    }
}

fn natural(keys: Doc<'_>, direction: Value<'_>) -> Result<Hint> {
    let alone = keys.elements().count() == 1;
    match Number::of(direction).and_then(Number::to_i64) {
        Some(1) if alone => Ok(Hint::Forward),
        Some(-1) if alone => Ok(Hint::Backward),
        _ => Err(Error::invalid(Code::BAD_VALUE, "a $natural hint is 1 or -1, alone").at("hint")),
    }
}
