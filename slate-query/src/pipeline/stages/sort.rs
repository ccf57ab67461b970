//! `$sort`: orders the documents.

use crate::{Code, Error, Result, expression::Bindings, pipeline::Stage, raw::Value, sort::Sort};

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    let sort = argument
        .as_document()
        .ok_or_else(|| Error::new(Code(15_973), "the $sort key specification must be an object"))?;
    let sort = Sort::parse(sort)?.with_collation(bindings.collation().cloned());
    if sort.natural().is_some() {
        return Err(Error::new(Code(16_410), "a field path's names may not start with '$'").at("$natural"));
    }
    if sort.is_empty() {
        return Err(Error::new(Code(15_976), "$sort stage must have at least one sort key"));
    }
    Ok(Stage::Sort(sort))
}
