//! `$match`: passes on the documents that match a filter.

use crate::{Code, Error, Result, expression::Bindings, filter::Filter, pipeline::Stage, raw::Value};

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    let filter = argument
        .as_document()
        .ok_or_else(|| Error::new(Code(15_959), "the match filter must be an expression in an object"))?;
    Filter::parse_with(filter, bindings).map(Stage::Match)
}
