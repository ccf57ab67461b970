//! `$skip`: drops the first documents.

use crate::{Code, Error, Result, expression::Bindings, number::Number, pipeline::Stage, raw::Value};

pub(super) fn parse(argument: Value<'_>, _: &Bindings) -> Result<Stage> {
    let skip = Number::of(argument).and_then(Number::to_i64).and_then(|skip| u64::try_from(skip).ok());
    skip.map(Stage::Skip).ok_or_else(|| {
        let message = format!("invalid argument to $skip stage: expected a whole number from 0 on, not {argument:?}");
        Error::new(Code(5_107_200), message)
    })
}
