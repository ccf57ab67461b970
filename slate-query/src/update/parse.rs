//! Parses updates.

use super::{
    Context,
    apply::Level,
    array_filter::ArrayFilters,
    operator::{self, Destination, Grammar, Operator, Unset},
    pipeline::Pipeline,
    replace::Replacement,
    scope::{RootFields, UpdateOutcome, UpdateScope},
    step::{self, PathStep},
    storage::{self, Depth},
    tree::{Acts, Leaf, Named, UpdateNode},
};
use crate::{
    Code, Error, Result,
    collation::Collation,
    expression::Bindings,
    path::Path,
    raw::{Doc, Element, Kind, MAX_DEPTH, Value, Writer},
};

/// A parsed update: operators, a replacement document, or a pipeline.
#[derive(Debug)]
pub struct Update(pub(super) UpdateForm);

#[derive(Debug)]
pub(super) enum UpdateForm {
    Operators(Operators),
    Replacement(Replacement),
    Pipeline(Pipeline),
}

/// The operators of an update.
#[derive(Debug)]
pub(super) struct Operators {
    pub(super) root: Named,
    filters: ArrayFilters,
    uses_position: UsesPosition,
    depth: Depth,
}

/// Whether an update needs the array position at which the filter matched, for the positional operator `$`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsesPosition {
    /// The update uses `$`: the whole filter must be evaluated.
    Yes,
    /// The update does not use `$`.
    No,
}

impl Update {
    /// Parses an update: a document of operators, a replacement, or the array of a pipeline's stages. Operators use the array
    /// filters for `$[name]`, stages the variables.
    ///
    /// # Errors
    /// MongoDB's codes.
    pub fn parse(update: Value<'_>, array_filters: &[Doc<'_>], bindings: &Bindings) -> Result<Self> {
        match update.kind() {
            Kind::Document => {
                let document = Doc::new(update.bytes());
                let filters = ArrayFilters::parse(array_filters, bindings.collation())?;
                if document.elements().next().is_some_and(|first| first.name.starts_with(b"$")) {
                    Operators::parse(document, filters, bindings.collation()).map(UpdateForm::Operators).map(Self)
                } else {
                    Ok(Self(UpdateForm::Replacement(Replacement::new(document))))
                }
            }
            Kind::Array if !array_filters.is_empty() => {
                Err(failed("arrayFilters may not be given with an update that is a pipeline".into()))
            }
            Kind::Array => Pipeline::parse(Doc::new(update.bytes()), bindings).map(UpdateForm::Pipeline).map(Self),
            _ => {
                let message = format!("an update is a document or an array, not a {}", update.kind().alias());
                Err(failed(message))
            }
        }
    }

    /// Returns the updated document; `None` if it does not change. Takes one pass over the document.
    ///
    /// # Errors
    /// MongoDB's codes, if the update cannot be applied to this document.
    pub fn apply(&self, doc: Doc<'_>, context: &Context) -> Result<Option<Vec<u8>>> {
        match &self.0 {
            UpdateForm::Replacement(replacement) => replacement.apply(doc, context),
            UpdateForm::Operators(operators) => operators.apply(doc, context),
            UpdateForm::Pipeline(pipeline) => pipeline.apply(doc, context),
        }
    }

    /// Returns whether this is a replacement, which MongoDB allows only for one document at a time.
    pub fn is_replacement(&self) -> bool {
        matches!(self.0, UpdateForm::Replacement(_))
    }

    /// Returns whether the update contains the positional operator `$`, so that the filter must say which element it
    /// matched.
    pub fn needs_position(&self) -> UsesPosition {
        match &self.0 {
            UpdateForm::Operators(operators) => operators.uses_position,
            UpdateForm::Replacement(_) | UpdateForm::Pipeline(_) => UsesPosition::No,
        }
    }
}

impl Operators {
    fn parse(update: Doc<'_>, filters: ArrayFilters, collation: Option<&Collation>) -> Result<Self> {
        let mut parser = Parser {
            root: UpdateNode::root(),
            filters,
            uses_position: UsesPosition::No,
            depth: Depth::Bounded,
            collation: collation.cloned(),
        };
        for modifier in update.elements() {
            parser.modifier(modifier)?;
        }
        let Parser { root, filters, uses_position, depth, collation: _ } = parser;
        filters.all_used()?;
        let root = match root {
            UpdateNode::Named(root) => root,
            UpdateNode::Each(_) | UpdateNode::Leaf(_) => Named::default(),
        };
        Ok(Self { root, filters, uses_position, depth })
    }

    pub(super) fn apply(&self, doc: Doc<'_>, context: &Context) -> Result<Option<Vec<u8>>> {
        let fields = RootFields::default();
        let scope = UpdateScope { filters: &self.filters, context, root: doc, fields: &fields };
        let mut out = Writer::into_buffer(Vec::with_capacity(doc.bytes().len() + 64));
        match scope.document(&[&self.root], doc, Level::Outermost, &mut out)? {
            UpdateOutcome::Unchanged | UpdateOutcome::Removed => Ok(None),
            UpdateOutcome::Changed => {
                let bytes = out.finish();
                storage::check_whole(&bytes, self.depth, context)?;
                Ok(Some(bytes))
            }
        }
    }
}

struct Parser {
    root: UpdateNode,
    filters: ArrayFilters,
    uses_position: UsesPosition,
    depth: Depth,
    collation: Option<Collation>,
}

impl Parser {
    fn modifier(&mut self, modifier: Element<'_>) -> Result<()> {
        let name = modifier.display_name();
        let grammar = operator::grammar(&name)?;
        let Some(fields) = modifier.value.as_document() else {
            let kind = modifier.value.kind().alias();
            return Err(failed(format!("{name} takes a document of fields, not a {kind}")).at(name));
        };
        fields.elements().try_for_each(|field| {
            // Field names contain no NUL byte, but may not be UTF-8.
            let text = std::str::from_utf8(field.name).map_err(|_| failed("a path is not UTF-8".into()))?;
            let path = Path::parse(text)?;
            self.field(grammar, path, field.value).map_err(|error| error.at(text))
        })
    }

    fn field(&mut self, grammar: Grammar, path: Path, argument: Value<'_>) -> Result<()> {
        match grammar {
            Grammar::Field(parse) => {
                let steps = step::parse(&path, &mut self.filters)?;
                self.insert(&path, steps, parse(argument)?, Acts::Always)
            }
            Grammar::Comparing(parse) => {
                let steps = step::parse(&path, &mut self.filters)?;
                self.insert(&path, steps, parse(argument, self.collation.as_ref())?, Acts::Always)
            }
            Grammar::FieldOnInsert(parse) => {
                let steps = step::parse(&path, &mut self.filters)?;
                self.insert(&path, steps, parse(argument)?, Acts::OnInsert)
            }
            Grammar::Rename => {
                let steps = step::parse(&path, &mut self.filters)?;
                self.insert(&path, steps, Box::new(Unset), Acts::Always)?;
                let destination = operator::parse_rename(argument)?;
                let steps = step::parse(&destination, &mut self.filters)?;
                if destination.parts().len() > path.parts().len() {
                    self.depth = Depth::Unknown;
                }
                let operator = Destination::new(path, destination.clone())?;
                self.insert(&destination, steps, Box::new(operator), Acts::Always)
            }
        }
    }

    fn insert(&mut self, path: &Path, steps: Vec<PathStep>, operator: Box<dyn Operator>, acts: Acts) -> Result<()> {
        if steps.len() + operator.depth() > MAX_DEPTH {
            self.depth = Depth::Unknown;
        }
        if steps.contains(&PathStep::Positional) {
            self.uses_position = UsesPosition::Yes;
        }
        self.root.insert(steps, Leaf { path: path.clone(), operator, acts })
    }
}

fn failed(message: String) -> Error {
    Error::new(Code::FAILED_TO_PARSE, message)
}
