//! `$project`: includes or excludes fields.

use bson::RawDocumentBuf;

use crate::{
    Code, Error, Result,
    pipeline::Stage,
    projection::Projection,
    raw::{Doc, Value},
};

pub(super) fn parse(argument: Value<'_>) -> Result<Stage> {
    let Some(document) = argument.as_document() else {
        return Err(Error::new(Code(15_969), "$project specification must be an object"));
    };
    if document.is_empty() {
        return Err(Error::new(Code(51_272), "projection specification must have at least one field"));
    }
    check(document)?;
    of(document)
}

/// The stage of a projection document.
pub(super) fn of(document: Doc<'_>) -> Result<Stage> {
    let projection = Projection::parse(document)?;
    let copy = RawDocumentBuf::from_bytes(document.bytes().to_vec());
    let document = copy.map_err(|error| Error::new(Code::INVALID_BSON, error.to_string()))?;
    Ok(Stage::Project { projection, document })
}

/// Refuses what only a `find` projects: array elements by condition or by position.
fn check(document: Doc<'_>) -> Result<()> {
    for element in document.elements() {
        let name = element.display_name();
        if name.ends_with(".$") {
            return Err(Error::new(Code(16_410), "a field path's names may not start with '$'").at(&*name));
        }
        let Some(nested) = element.value.as_document() else { continue };
        match nested.elements().next() {
            Some(operator) if operator.name == b"$elemMatch" => {
                let message = "Unrecognized expression '$elemMatch'";
                return Err(Error::new(Code::INVALID_PIPELINE_OPERATOR, message).at(&*name));
            }
            Some(operator) if operator.name == b"$slice" => return Err(Error::unsupported("$slice").at(&*name)),
            _ => check(nested).map_err(|error| error.at(&*name))?,
        }
    }
    Ok(())
}
