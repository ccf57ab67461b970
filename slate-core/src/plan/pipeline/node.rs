use std::fmt;

use bson::RawDocumentBuf;
use slate_query::{
    expression::Needs,
    filter::Filter,
    pipeline::{
        BucketAuto, CollStats, Densify, Documents, GraphLookup, Group, Kept, Lookup, Redact, ReplaceRoot, Stage,
        UnionWith, Unwind, Windows,
    },
    projection::Projection,
    raw::Doc,
    sort::Sort,
};

use super::{Optimization, absorb::add_nodes};
use crate::plan::{self, Window};

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
        stage: plan::Stage,
        projection: Projection,
        document: RawDocumentBuf,
    },
    /// Ties keep the order of the input. Holds at most `limit` rows.
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
    /// The next node does not depend on it.
    Unsorted,
}

impl DocumentNode {
    /// Returns whether the node, as the first of a pipeline of `$facet`, receives the documents while the input is read.
    pub(crate) fn is_fed(&self) -> bool {
        matches!(self, Self::Group { order: GroupOrder::None, .. })
    }

    /// Returns how many nodes hold rows at the same time: this one, the nodes that are fed at the same time, and the
    /// nodes of its pipelines, which are executed one after the other.
    pub(crate) fn holders(&self) -> usize {
        let below = match self {
            Self::Facet { facets, .. } => {
                let fed = |nodes: &[Self]| nodes.first().is_some_and(Self::is_fed);
                let others = |nodes: &[Self]| nodes.iter().skip(usize::from(fed(nodes))).map(Self::holders).sum();
                let most: usize = facets.iter().map(|(_, nodes)| others(nodes)).max().unwrap_or_default();
                most + facets.iter().filter(|(_, nodes)| fed(nodes)).count()
            }
            _ => 0,
        };
        usize::from(self.holds_rows()) + below
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

    fn holds_rows(&self) -> bool {
        match self {
            Self::Group { order, .. } => *order == GroupOrder::None,
            Self::Sort { .. }
            | Self::Sample(_)
            | Self::BucketAuto(_)
            | Self::Facet { .. }
            | Self::GraphLookup { .. }
            | Self::Lookup { .. }
            | Self::SetWindowFields(_) => true,
            Self::Match(_)
            | Self::Project { .. }
            | Self::Slice(_)
            | Self::Count(_)
            | Self::NameCount(_)
            | Self::Repeat
            | Self::CollStats(_)
            | Self::Densify(_)
            | Self::Documents(_)
            | Self::IndexStats
            | Self::Redact(_)
            | Self::ReplaceRoot(_)
            | Self::UnionWith { .. }
            | Self::Unwind(_) => false,
        }
    }

    /// Returns the stages of the node as they are drawn, from the root on.
    pub(crate) fn stages(&self) -> impl Iterator<Item = plan::Stage> + use<> {
        let (window, stage) = match self {
            Self::Match(_) => (Window::default(), Some(plan::Stage::Match)),
            Self::Project { stage, .. } => (Window::default(), Some(*stage)),
            Self::Sort { .. } => (Window::default(), Some(plan::Stage::Sort)),
            Self::Slice(window) => (*window, None),
            Self::Repeat => (Window::default(), None),
            Self::Sample(_) => (Window::default(), Some(plan::Stage::Sample)),
            Self::Count(_) | Self::NameCount(_) => (Window::default(), Some(plan::Stage::CountRows)),
            Self::BucketAuto(_) => (Window::default(), Some(plan::Stage::BucketAuto)),
            Self::CollStats(_) => (Window::default(), Some(plan::Stage::CollStats)),
            Self::Densify(_) => (Window::default(), Some(plan::Stage::Densify)),
            Self::Documents(_) => (Window::default(), Some(plan::Stage::Documents)),
            Self::Facet { .. } => (Window::default(), Some(plan::Stage::Facet)),
            Self::GraphLookup { .. } => (Window::default(), Some(plan::Stage::GraphLookup)),
            Self::Group { .. } => (Window::default(), Some(plan::Stage::Group)),
            Self::IndexStats => (Window::default(), Some(plan::Stage::IndexStats)),
            Self::Lookup { .. } => (Window::default(), Some(plan::Stage::Lookup)),
            Self::Redact(_) => (Window::default(), Some(plan::Stage::Redact)),
            Self::ReplaceRoot(_) => (Window::default(), Some(plan::Stage::ReplaceRoot)),
            Self::SetWindowFields(_) => (Window::default(), Some(plan::Stage::SetWindowFields)),
            Self::UnionWith { .. } => (Window::default(), Some(plan::Stage::UnionWith)),
            Self::Unwind(_) => (Window::default(), Some(plan::Stage::Unwind)),
        };
        window.stages().chain(stage)
    }
}

impl DocumentNode {
    /// Returns the node of a stage.
    pub(super) fn of(stage: Stage, optimization: Optimization) -> Self {
        match stage {
            Stage::Match(filter) => Self::Match(filter),
            Stage::Project { name, projection, document } => {
                let stage = if name == "$project" { plan::Stage::Projection } else { plan::Stage::AddFields };
                Self::Project { stage, projection, document }
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
            Stage::Facet(facet) => {
                let argument = facet.to_string();
                let kept = match optimization {
                    Optimization::On => Kept::of(&facet.needs()),
                    Optimization::Off => Kept::default(),
                };
                let nodes = |stages: Vec<Stage>| {
                    let mut nodes = Vec::new();
                    // Stages that read no field need only the number of documents.
                    if optimization == Optimization::On && Needs::of(&stages) == Needs::NOTHING {
                        nodes.extend([Self::Count("n".into()), Self::Repeat]);
                    }
                    add_nodes(&mut nodes, stages.into_iter(), optimization);
                    nodes
                };
                let facets = facet.into_pipelines().into_iter().map(|(name, stages)| (name, nodes(stages))).collect();
                Self::Facet { facets, kept, argument }
            }
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

/// The line of the node in a drawn plan, without its stage.
impl fmt::Display for DocumentNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Match(filter) => filter.fmt(f),
            Self::Project { document, .. } => write!(f, "{:?}", Doc::from(document)),
            Self::Sort { sort, limit: None } => sort.fmt(f),
            Self::Sort { sort, limit: Some(limit) } => write!(f, "{sort}, top {limit}"),
            Self::Sample(size) => size.fmt(f),
            Self::Count(name) | Self::NameCount(name) => name.fmt(f),
            Self::BucketAuto(stage) => stage.fmt(f),
            Self::CollStats(stats) => stats.fmt(f),
            Self::Densify(densify) => densify.fmt(f),
            Self::Documents(documents) => documents.fmt(f),
            Self::Facet { argument, .. } => argument.fmt(f),
            Self::GraphLookup { graph, .. } => graph.fmt(f),
            Self::Group { group, order: GroupOrder::None, result: GroupResult::Sorted } => group.fmt(f),
            Self::Group { group, order: GroupOrder::None, result: GroupResult::Unsorted } => {
                write!(f, "{group}, unsorted")
            }
            Self::Group { group, order: GroupOrder::ByKey, .. } => write!(f, "{group}, in the order of its ids"),
            Self::Group { group, order: GroupOrder::ByEnd, .. } => write!(f, "{group}, from the first value"),
            Self::Lookup { lookup, .. } => lookup.fmt(f),
            Self::Redact(redact) => redact.fmt(f),
            Self::ReplaceRoot(replace) => replace.fmt(f),
            Self::SetWindowFields(windows) => windows.fmt(f),
            Self::UnionWith { union, .. } => union.fmt(f),
            Self::Unwind(unwind) => unwind.fmt(f),
            // A slice is drawn as up to two nodes of its own, repetitions not at all.
            Self::IndexStats | Self::Slice(_) | Self::Repeat => Ok(()),
        }
    }
}
