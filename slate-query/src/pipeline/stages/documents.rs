//! `$documents`: the documents of an expression, in place of those of a collection.

use crate::{
    Code, Error, Result,
    expression::{Bindings, Expression},
    pipeline::Stage,
    raw::{Kind, OwnedValue, Value},
};

/// A parsed `$documents`.
#[derive(Clone, Debug)]
pub struct Documents {
    documents: Vec<OwnedValue>,
    argument: OwnedValue,
}

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    if bindings.has_unknown() && Expression::parse(argument, bindings.names())?.as_constant().is_none() {
        return Ok(Stage::Documents(Documents { documents: Vec::new(), argument: argument.to_owned() }));
    }
    let value = bindings.compute(argument)?;
    let value = value.as_ref().map_or(Value::NULL, OwnedValue::as_value);
    let array = value.as_array().ok_or_else(|| {
        let message = format!("the argument of $documents must be an array of documents, not {}", value.kind().alias());
        Error::new(Code(5_858_203), message)
    })?;
    let document = |value: Value<'_>| match value.kind() {
        Kind::Document => Ok(value.to_owned()),
        kind => {
            let message = format!("the elements of $documents must be documents, not {}", kind.alias());
            Err(Error::new(Code(40_228), message))
        }
    };
    let documents = array.values().map(document).collect::<Result<_>>()?;
    Ok(Stage::Documents(Documents { documents, argument: argument.to_owned() }))
}

impl Documents {
    /// Returns the documents.
    pub fn into_documents(self) -> Vec<OwnedValue> {
        self.documents
    }
}

crate::pipeline::shown_argument!(Documents);
