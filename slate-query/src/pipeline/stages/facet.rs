//! `$facet`: one document with the results of several pipelines over the same documents.

use std::fmt;

use super::parse_within;
use crate::{
    Code, Error, Result,
    expression::{Bindings, Needs},
    path::field_path,
    pipeline::Stage,
    raw::{OwnedValue, Value},
};

/// A parsed `$facet`.
#[derive(Clone, Debug)]
pub struct Facet {
    pipelines: Vec<(Box<str>, Vec<Stage>)>,
    argument: OwnedValue,
}

pub(super) fn parse(argument: Value<'_>, bindings: &Bindings) -> Result<Stage> {
    let refused = |message: &'static str| Error::new(Code(40_169), message);
    let spec = argument
        .as_document()
        .filter(|spec| !spec.is_empty())
        .ok_or_else(|| refused("the $facet specification must be a non-empty object"))?;
    let mut pipelines = Vec::new();
    for element in spec.elements() {
        let name = element.display_name();
        if name.contains('.') {
            return Err(Error::new(Code::FAILED_TO_PARSE, "the name of a facet cannot contain '.'").at(&*name));
        }
        field_path::names(&name).map_err(|error| Error::new(Code::FAILED_TO_PARSE, error.message()).at(&*name))?;
        let stages = element
            .value
            .as_array()
            .ok_or_else(|| Error::new(Code(40_170), "arguments to $facet must be arrays").at(&*name))?;
        let stages = parse_within("$facet", 40_600, stages, bindings).map_err(|error| error.at(&*name))?;
        if let Some(stage) = stages.iter().find(|stage| stage.is_refused_in_facet()) {
            let message = format!("{} is not allowed to be used within a $facet stage", stage.name());
            return Err(Error::new(Code(40_600), message).at(&*name));
        }
        pipelines.push((Box::from(&*name), stages));
    }
    Ok(Stage::Facet(Facet { pipelines, argument: argument.to_owned() }))
}

impl Facet {
    /// Returns the fields that the pipelines read.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::NOTHING;
        self.pipelines.iter().for_each(|(_, stages)| needs.add_all(Needs::of(stages)));
        needs
    }

    pub(in crate::pipeline) fn pipelines(&self) -> impl Iterator<Item = &Vec<Stage>> {
        self.pipelines.iter().map(|(_, stages)| stages)
    }

    /// Returns the pipelines, to be rewritten.
    pub fn pipelines_mut(&mut self) -> impl Iterator<Item = &mut Vec<Stage>> {
        self.pipelines.iter_mut().map(|(_, stages)| stages)
    }

    /// Returns the pipelines and the names of their results.
    pub fn into_pipelines(self) -> Vec<(Box<str>, Vec<Stage>)> {
        self.pipelines
    }
}

impl fmt::Display for Facet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.argument)
    }
}
