//! `$unionWith`: passes on the documents of its input, and then those of another collection or of `$documents`.

use super::{documents_first, own_documents, parse_within};
use crate::{
    Code, Error, Result,
    expression::Bindings,
    pipeline::{Stage, check_collection},
    raw::{OwnedValue, Value},
};

/// A parsed `$unionWith`.
#[derive(Clone, Debug)]
pub struct UnionWith {
    /// Empty if the pipeline begins with `$documents`.
    from: Box<str>,
    stages: Vec<Stage>,
    argument: OwnedValue,
}

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    let refused = |message: &str| Error::new(Code::FAILED_TO_PARSE, message);
    let (mut from, mut stages) = (None, None);
    if let Some(name) = argument.as_str() {
        from = Some(name);
    } else {
        let options = argument.as_document();
        let options =
            options.ok_or_else(|| refused("the $unionWith stage specification must be an object or string"))?;
        for element in options.elements() {
            let (name, value) = (element.display_name(), element.value);
            let wrong = |kind: &str| {
                let found = value.kind().alias();
                Error::new(Code::TYPE_MISMATCH, format!("'{name}' of $unionWith must be {kind}, not {found}"))
                    .at(&*name)
            };
            match &*name {
                "coll" if value.is_nullish() => {}
                "coll" => from = Some(value.as_str().ok_or_else(|| wrong("a string"))?),
                "pipeline" => stages = Some(value.as_array().ok_or_else(|| wrong("an array"))?),
                _ => {
                    let message = format!("'$unionWith.{name}' is an unknown field");
                    return Err(Error::new(Code(40_415), message).at(&*name));
                }
            }
        }
    }
    from.map_or(Ok(()), check_collection).map_err(|error| error.at("coll"))?;
    let inner = bindings.below()?;
    let stages = stages.map(|stages| parse_within("$unionWith", 31_441, stages, &inner)).transpose();
    let stages = stages.map_err(|error| error.at("pipeline"))?.unwrap_or_default();
    let from = match from {
        Some(_) if documents_first(&stages) => return Err(own_documents("$unionWith")),
        Some(from) => from,
        None if documents_first(&stages) => "",
        None => {
            return Err(refused("$unionWith without a collection needs a pipeline that begins with $documents"));
        }
    };
    let union = UnionWith { from: from.into(), stages, argument: argument.to_owned() };
    Ok(Stage::UnionWith(union))
}

impl UnionWith {
    /// Returns the name of the other collection.
    pub fn from(&self) -> &str {
        &self.from
    }

    /// Returns the names of all collections that the stage reads.
    pub fn collections(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.from).chain(self.stages.iter().flat_map(Stage::collections))
    }

    /// Returns the pipeline of the other collection.
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }
}

crate::pipeline::shown_argument!(UnionWith);
