//! `$indexStats`: a document for each index of the collection, in place of its documents.

use crate::{
    Code, Error, Result,
    expression::Bindings,
    pipeline::Stage,
    raw::{Doc, Value},
};

/// Fails with 28803 unless the argument is an empty document.
pub(super) fn parse(argument: Value<'_>, _: &Bindings) -> Result<Stage> {
    if argument.as_document().is_some_and(Doc::is_empty) {
        return Ok(Stage::IndexStats);
    }
    Err(Error::new(Code(28_803), "The $indexStats stage specification must be an empty object"))
}
