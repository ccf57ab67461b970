//! `$project`: includes, excludes or computes fields.

use bson::RawDocumentBuf;

use crate::{
    Code, Error, Result,
    expression::Bindings,
    pipeline::Stage,
    projection::Projection,
    raw::{Doc, Value},
};

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    let Some(document) = argument.as_document() else {
        return Err(Error::new(Code(15_969), "$project specification must be an object"));
    };
    if document.is_empty() {
        return Err(Error::new(Code(51_272), "projection specification must have at least one field"));
    }
    of(document, bindings)
}

/// Returns the stage of a projection document.
pub(super) fn of(document: Doc<'_>, bindings: &Bindings) -> Result<Stage> {
    let projection = Projection::parse_stage(document, bindings)?;
    Ok(Stage::Project { name: "$project", projection, document: copied(document)? })
}

/// Copies an argument for explain.
pub(super) fn copied(document: Doc<'_>) -> Result<RawDocumentBuf> {
    let copy = RawDocumentBuf::from_bytes(document.bytes().to_vec());
    copy.map_err(|error| Error::new(Code::INVALID_BSON, error.to_string()))
}
