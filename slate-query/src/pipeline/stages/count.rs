//! `$count`: the number of documents, in a field of the given name.

use crate::{Code, Error, Result, expression::Bindings, pipeline::Stage, raw::Value};

pub(super) fn parse(argument: Value<'_>, _: &Bindings) -> Result<Stage> {
    let refused = |code, message: &'static str| Err(Error::new(Code(code), message));
    let Some(name) = argument.as_str() else {
        return refused(40_156, "the count field must be a non-empty string");
    };
    if name.is_empty() {
        return refused(40_157, "the count field must be a non-empty string");
    }
    if name.starts_with('$') {
        return refused(40_158, "the count field cannot be a $-prefixed path");
    }
    if name.contains('\0') {
        return refused(40_159, "the count field cannot contain a NUL byte");
    }
    if name.contains('.') {
        return refused(40_160, "the count field cannot contain '.'");
    }
    if name == "_id" {
        return refused(9_039_800, "the count field cannot be '_id'");
    }
    Ok(Stage::Count(name.into()))
}
