use std::fmt::Display;

use bson::{Document, RawDocumentBuf, doc};
use slate_query::{
    filter::Filter,
    pipeline::{
        BucketAuto, CollStats, Densify, Documents, GraphLookup, Group, Kept, Lookup, Redact, ReplaceRoot, Stage,
        UnionWith, Unwind, Windows,
    },
    projection::Projection,
    raw::{Doc, Value},
    sort::Sort,
};

use super::{Optimization, facet};
use crate::{
    document::number,
    plan::{
        Node, Window,
        mongo_fields::{bson, condition, sort_pattern, value},
        nodes::{Description, pipeline_window},
        shown::ShownNode,
    },
};

/// The stages of a pipeline that are executed in the document tier.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    /// In the order of execution.
    pub(crate) nodes: Vec<DocumentNode>,
    /// The names of the rules that rewrote the pipeline.
    pub(crate) rules: Vec<&'static str>,
}

impl Nodes {
    /// Returns the names of the other collections that the stages read.
    pub(crate) fn collections(&self) -> impl Iterator<Item = &str> {
        let mut names = Vec::new();
        self.nodes.iter().for_each(|node| node.add_collections(&mut names));
        names.into_iter()
    }
}

/// A node of the document tier: makes documents of the documents that its input lends.
#[derive(Clone, Debug)]
pub(crate) enum DocumentNode {
    Match(Filter),
    Project {
        /// `$project` or `$addFields`.
        name: &'static str,
        projection: Projection,
        document: RawDocumentBuf,
    },
    /// Ties stay in the order of the input. Returns at most `limit` rows, and drops others early.
    Sort {
        sort: Sort,
        limit: Option<u64>,
    },
    Slice(Window),
    Sample(u64),
    BucketAuto(BucketAuto),
    /// A document about the collection, in place of those of the plan.
    CollStats(CollStats),
    Densify(Densify),
    /// Documents in place of those of the plan.
    Documents(Documents),
    /// The number of documents, in a field of this name; no document if there are none.
    Count(Box<str>),
    /// Like [`Count`](Self::Count), over a plan that has counted the documents already.
    NameCount(Box<str>),
    /// As many documents without fields as a plan has counted, for stages that read no field.
    Repeat,
    /// The nodes of several pipelines over the input.
    Facet {
        facets: Vec<(Box<str>, Vec<DocumentNode>)>,
        /// The fields that these pipelines read.
        kept: Kept,
        argument: String,
    },
    GraphLookup {
        graph: Box<GraphLookup>,
        optimization: Optimization,
    },
    Group {
        group: Group,
        order: GroupOrder,
        result: GroupResult,
    },
    /// A document for each index, in place of those of the plan.
    IndexStats,
    Lookup {
        lookup: Box<Lookup>,
        optimization: Optimization,
    },
    Redact(Redact),
    ReplaceRoot(ReplaceRoot),
    SetWindowFields(Box<Windows>),
    UnionWith {
        union: UnionWith,
        optimization: Optimization,
    },
    Unwind(Unwind),
}

/// What a group knows about the order of its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum GroupOrder {
    #[default]
    None,
    /// The documents of a group follow each other, in ascending order of the groups, so that only one group is held.
    ByKey,
    /// The documents are in the order of [`Group::end`]: the first with a value determines the result.
    ByEnd,
}

/// The order of a group's result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum GroupResult {
    /// By the ids of the groups.
    #[default]
    Sorted,
    /// Any order, because the next node does not depend on it.
    Unsorted,
}

impl DocumentNode {
    /// Returns whether the node, as the first of a pipeline of `$facet`, receives the documents while the input is read.
    pub(crate) fn is_fed(&self) -> bool {
        matches!(self, Self::Group { order: GroupOrder::None, .. })
    }

    fn add_collections<'n>(&'n self, names: &mut Vec<&'n str>) {
        match self {
            Self::Lookup { lookup, .. } => names.extend(lookup.collections()),
            Self::GraphLookup { graph, .. } => names.push(graph.from()),
            Self::UnionWith { union, .. } => names.extend(union.collections()),
            Self::Facet { facets, .. } => {
                facets.iter().flat_map(|(_, nodes)| nodes).for_each(|node| node.add_collections(names));
            }
            _ => {}
        }
    }
}

impl Node for DocumentNode {
    fn describe(&self, visit: &mut dyn FnMut(Description<'_>)) {
        match self {
            Self::BucketAuto(stage) => plain(visit, ("$bucketAuto", "BUCKET AUTO"), 1, stage, stage.argument()),
            Self::CollStats(stage) => plain(visit, ("$collStats", "COLLECTION STATS"), 0, stage, stage.argument()),
            Self::Count(name) | Self::NameCount(name) => visit(Description {
                show: &|shown, _| shown.pipeline("$count", name, &**name),
                ..Description::of("$count", "COUNT ROWS")
            }),
            Self::Densify(stage) => plain(visit, ("$densify", "DENSIFY"), 0, stage, stage.argument()),
            Self::Documents(stage) => plain(visit, ("$documents", "DOCUMENTS"), 0, stage, stage.argument()),
            Self::Facet { facets, argument, .. } => visit(Description {
                holders: 1 + facet::holders(facets),
                show: &|shown, _| shown.pipeline("$facet", argument, facet::argument(facets)),
                ..Description::of("$facet", "FACET")
            }),
            Self::GraphLookup { graph, .. } => {
                plain(visit, ("$graphLookup", "GRAPH LOOKUP"), 1, graph, graph.argument());
            }
            Self::Group { group, order, result } => {
                let (held, note) = match (order, result) {
                    (GroupOrder::None, GroupResult::Sorted) => (1, ""),
                    (GroupOrder::None, GroupResult::Unsorted) => (1, ", unsorted"),
                    (GroupOrder::ByKey, _) => (0, ", in the order of its ids"),
                    (GroupOrder::ByEnd, _) => (0, ", from the first value"),
                };
                plain(visit, ("$group", "GROUP"), held, &format_args!("{group}{note}"), group.argument());
            }
            Self::IndexStats => visit(Description {
                show: &|shown, _| shown.pipeline("$indexStats", "", Document::new()),
                ..Description::of("$indexStats", "INDEX STATS")
            }),
            Self::Lookup { lookup, .. } => plain(visit, ("$lookup", "LOOKUP"), 1, lookup, lookup.argument()),
            Self::Match(filter) => visit(Description {
                show: &|shown, _| shown.pipeline("$match", filter, condition(filter)),
                ..Description::of("MATCH", "MATCH")
            }),
            Self::Project { name, document, .. } => {
                let stage = if *name == "$project" { ("PROJECTION", "PROJECT") } else { ("$addFields", "ADD FIELDS") };
                let document = Doc::from(document);
                visit(Description {
                    show: &|shown, _| shown.pipeline(name, format_args!("{document:?}"), bson(document)),
                    ..Description::of(stage.0, stage.1)
                });
            }
            Self::Redact(stage) => plain(visit, ("$redact", "REDACT"), 0, stage, stage.argument()),
            Self::ReplaceRoot(stage) => visit(Description {
                show: &|shown, _| shown.pipeline("$replaceRoot", stage, doc! { "newRoot": value(stage.argument()) }),
                ..Description::of("$replaceRoot", "REPLACE ROOT")
            }),
            Self::Sample(size) => visit(Description {
                holders: 1,
                show: &|shown, _| shown.pipeline("$sample", size, doc! { "size": number(*size) }),
                ..Description::of("$sample", "SAMPLE")
            }),
            Self::SetWindowFields(stage) => plain(visit, ("$setWindowFields", "WINDOW"), 1, stage, stage.argument()),
            Self::Slice(window) => {
                visit(Description { window: *window, show_window: pipeline_window, ..Description::HIDDEN });
            }
            Self::Repeat => visit(Description::HIDDEN),
            Self::Sort { sort, limit } => visit(Description {
                holders: 1,
                show: &|shown, _| {
                    let mut argument = doc! { "sortKey": sort_pattern(sort) };
                    let Some(limit) = limit else { return shown.pipeline("$sort", sort, argument) };
                    argument.insert("limit", number(*limit));
                    shown.pipeline("$sort", format_args!("{sort}, top {limit}"), argument)
                },
                ..Description::of("SORT", "SORT")
            }),
            Self::UnionWith { union, .. } => plain(visit, ("$unionWith", "UNION WITH"), 0, union, union.argument()),
            Self::Unwind(stage) => visit(Description {
                show: &|shown, _| shown.pipeline("$unwind", stage, value(stage.argument().as_value())),
                ..Description::of("$unwind", "UNWIND")
            }),
        }
    }
}

/// Describes a node by its names, the number of nodes that hold rows, its line in a drawn plan, and the argument of its stage.
fn plain(
    visit: &mut dyn FnMut(Description<'_>),
    (name, title): (&'static str, &'static str),
    holders: usize,
    text: &dyn Display,
    argument: Value<'_>,
) {
    let show = |shown: ShownNode, _: &str| shown.pipeline(name, text, value(argument));
    visit(Description { holders, show: &show, ..Description::of(name, title) });
}

impl DocumentNode {
    /// Returns the node of a stage.
    pub(super) fn of(stage: Stage, optimization: Optimization) -> Self {
        match stage {
            Stage::Match(filter) => Self::Match(filter),
            Stage::Project { name, projection, document } => {
                let name = if name == "$project" { name } else { "$addFields" };
                Self::Project { name, projection, document }
            }
            Stage::Sort(sort) => Self::Sort { sort, limit: None },
            Stage::Limit(limit) => Self::Slice(Window { skip: 0, limit: Some(limit) }),
            Stage::Skip(skip) => Self::Slice(Window { skip, limit: None }),
            Stage::Sample(size) => Self::Sample(size),
            Stage::Count(name) => Self::Count(name),
            Stage::BucketAuto(stage) => Self::BucketAuto(stage),
            Stage::CollStats(stats) => Self::CollStats(stats),
            Stage::Densify(densify) => Self::Densify(densify),
            Stage::Documents(documents) => Self::Documents(documents),
            Stage::Facet(stage) => facet::node(stage, optimization),
            Stage::IndexStats => Self::IndexStats,
            Stage::GraphLookup(graph) => Self::GraphLookup { graph, optimization },
            Stage::Group(group) => Self::Group { group, order: GroupOrder::None, result: GroupResult::Sorted },
            Stage::Lookup(lookup) => Self::Lookup { lookup: Box::new(lookup), optimization },
            Stage::Redact(redact) => Self::Redact(redact),
            Stage::ReplaceRoot(replace) => Self::ReplaceRoot(replace),
            Stage::SetWindowFields(windows) => Self::SetWindowFields(Box::new(windows)),
            Stage::UnionWith(union) => Self::UnionWith { union, optimization },
            Stage::Unwind(unwind) => Self::Unwind(unwind),
        }
    }
}
