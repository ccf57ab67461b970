//! `$addFields` and `$set`: sets fields to the values of expressions.

use super::project::copied;
use crate::{Code, Error, Result, expression::Bindings, pipeline::Stage, projection::Projection, raw::Value};

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    let document = argument
        .as_document()
        .ok_or_else(|| Error::new(Code(40_272), "$addFields specification stage must be an object"))?;
    let projection = Projection::parse_additions(document, bindings)?;
    Ok(Stage::Project { name: "$addFields", projection, document: copied(document)? })
}
