//! `$limit`: passes on the first documents.

use crate::{Code, Error, Result, expression::Bindings, number::Number, pipeline::Stage, raw::Value};

pub(super) fn parse(argument: Value<'_>, _: &Bindings) -> Result<Stage> {
    let limit = Number::of(argument).and_then(Number::to_i64).ok_or_else(|| {
        let message = format!("invalid argument to $limit stage: expected a whole number, not {argument:?}");
        Error::new(Code(5_107_201), message)
    })?;
    match u64::try_from(limit) {
        Ok(limit) if limit > 0 => Ok(Stage::Limit(limit)),
        _ => Err(Error::new(Code(15_958), "the limit must be positive")),
    }
}
