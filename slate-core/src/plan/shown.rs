//! A plan as a tree of nodes, each with what is shown of it: its line in the drawn plan, its fields in explain documents, and its
//! stage in MongoDB's `explain`.
//!
//! What is shown of a node is part of its description (`nodes/`). Drawing (`draw.rs`) and the shape of MongoDB's `explain` (`shape.rs`)
//! are walks over the tree. Inputs stand in the order in which they are opened, so that the nodes have the order of their measures.

use std::fmt::Display;

use bson::{Bson, Document, doc};
use slate_query::raw::Doc;

use super::{IndexScan, Measures, Stage, mongo_fields::bson, shown_text::shown_text};

#[derive(Default)]
pub(crate) struct ShownNode {
    pub(super) stage: Stage,
    /// Follows the stage's title in the drawn plan.
    pub(super) line: String,
    /// The fields of the node's document.
    pub(super) details: Document,
    pub(super) mongo: MongoStage,
    /// `None`: the plan was not executed.
    pub(super) measures: Option<Measures>,
    pub(super) inputs: Vec<ShownNode>,
}

/// What MongoDB's `explain` shows for a node.
#[derive(Default)]
pub(crate) enum MongoStage {
    /// A stage of the plan, with these fields.
    Own(&'static str, Document),
    /// Like [`Own`](Self::Own): a stage that reads records, to which a condition above it belongs.
    Records(&'static str, Document),
    /// The lookup of one `_id`: the scan of an index with these fields, or one stage with the fetch above it.
    Lookup(Document),
    /// A condition of the stage below, if that reads records.
    Condition(Document),
    /// Counts the rows of its input.
    Count,
    /// A projection with these fields, over the scan that finds the distinct values.
    Values(Document),
    /// A stage of the pipeline: its name and its argument.
    Pipeline(&'static str, Bson),
    /// Nothing.
    #[default]
    Hidden,
}

impl ShownNode {
    pub(super) fn with(mut self, name: &str, value: impl Into<Bson>) -> Self {
        self.details.insert(name, value);
        self
    }

    pub(super) fn line(self, line: impl Into<String>) -> Self {
        Self { line: line.into(), ..self }
    }

    pub(super) fn mongo(self, name: &'static str, fields: Document) -> Self {
        self.shown_as(MongoStage::Own(name, fields))
    }

    pub(super) fn shown_as(self, mongo: MongoStage) -> Self {
        Self { mongo, ..self }
    }

    /// Shows the node as MongoDB's projection `name`.
    pub(super) fn projects(self, name: &'static str, document: Doc<'_>) -> Self {
        let text = shown_text(format_args!("{document:?}"));
        self.with("projection", &text).line(text).mongo(name, doc! { "transformBy": bson(document) })
    }

    /// Shows the node as a stage of the pipeline, with this line and this argument.
    pub(super) fn pipeline(self, name: &'static str, line: impl Display, argument: impl Into<Bson>) -> Self {
        let line = shown_text(line);
        self.with("argument", &line).line(line).shown_as(MongoStage::Pipeline(name, argument.into()))
    }

    /// Sets the measures of the nodes, each node before its inputs.
    pub(super) fn measure<'m>(&mut self, measures: &mut impl Iterator<Item = &'m (Stage, Measures)>) {
        let own = measures.next().filter(|(stage, _)| *stage == self.stage);
        self.measures = Some(own.map(|(_, measures)| *measures).unwrap_or_default());
        self.inputs.iter_mut().for_each(|input| input.measure(measures));
    }

    /// Returns the sum of the measures of the node and of those below.
    pub(super) fn total(&self) -> Measures {
        let mut total = self.measures.unwrap_or_default();
        self.inputs.iter().for_each(|input| total += input.total());
        total
    }

    /// Returns whether the node or one below reads an index other than the one on `_id`.
    pub(super) fn reads_index(&self) -> bool {
        self.stage == IndexScan::STAGE || self.inputs.iter().any(Self::reads_index)
    }
}
