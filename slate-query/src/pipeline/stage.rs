use std::fmt;

use bson::RawDocumentBuf;

use super::{
    Windows,
    stages::{
        BucketAuto, CollStats, Densify, Documents, Facet, GraphLookup, Group, Lookup, Redact, ReplaceRoot, UnionWith,
        Unwind,
    },
};
use crate::{expression::Needs, filter::Filter, path::Path, projection::Projection, raw::Doc, sort::Sort};

/// A parsed stage of a pipeline. Its [`Display`](fmt::Display) writes the argument.
#[derive(Clone, Debug)]
pub enum Stage {
    /// Passes on the documents that match.
    Match(Filter),
    /// Includes, excludes or computes fields: `$project`, `$addFields`, `$set` and `$unset`.
    Project {
        /// The parsed projection.
        projection: Projection,
        /// The stage's name.
        name: &'static str,
        /// The argument as written, for explain.
        document: RawDocumentBuf,
    },
    /// Orders the documents.
    Sort(Sort),
    /// Passes on the first documents.
    Limit(u64),
    /// Drops the first documents.
    Skip(u64),
    /// Passes on this many documents, chosen at random.
    Sample(u64),
    /// Returns a document for each of a number of buckets.
    BucketAuto(BucketAuto),
    /// Returns a document about the collection in place of its documents.
    CollStats(CollStats),
    /// Replaces the documents by one document with their number under this name; by none if there are no documents.
    Count(Box<str>),
    /// Adds documents where the values of a field leave gaps. The documents come in the order of the field.
    Densify(Densify),
    /// Returns these documents in place of a collection's.
    Documents(Documents),
    /// Returns one document with the results of several pipelines.
    Facet(Facet),
    /// Adds the documents of another collection that are reached from each document.
    GraphLookup(Box<GraphLookup>),
    /// Returns a document for each group.
    Group(Group),
    /// Returns a document for each index of the collection in place of its documents.
    IndexStats,
    /// Adds the matching documents of another collection.
    Lookup(Lookup),
    /// Removes parts of each document, as an expression decides.
    Redact(Redact),
    /// Replaces each document by the value of an expression.
    ReplaceRoot(ReplaceRoot),
    /// Adds fields computed from the documents around each document. The documents come in the order of partitions.
    SetWindowFields(Windows),
    /// Passes on the documents of its input, and then those of another collection.
    UnionWith(UnionWith),
    /// Returns a document for each element of an array.
    Unwind(Unwind),
}

impl Stage {
    /// Returns the stage's name, as explain returns it. `$unset` is a `$project`, `$set` an `$addFields`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Match(_) => "$match",
            Self::Project { name, .. } => name,
            Self::BucketAuto(_) => "$bucketAuto",
            Self::CollStats(_) => "$collStats",
            Self::Densify(_) => "$densify",
            Self::Documents(_) => "$documents",
            Self::Facet(_) => "$facet",
            Self::GraphLookup(_) => "$graphLookup",
            Self::Group(_) => "$group",
            Self::IndexStats => "$indexStats",
            Self::Lookup(_) => "$lookup",
            Self::Redact(_) => "$redact",
            Self::ReplaceRoot(_) => "$replaceRoot",
            Self::Sort(_) => "$sort",
            Self::Limit(_) => "$limit",
            Self::Skip(_) => "$skip",
            Self::Sample(_) => "$sample",
            Self::Count(_) => "$count",
            Self::SetWindowFields(_) => "$setWindowFields",
            Self::UnionWith(_) => "$unionWith",
            Self::Unwind(_) => "$unwind",
        }
    }

    /// Returns the names of the other collections that the stage reads.
    pub fn collections(&self) -> Vec<&str> {
        match self {
            Self::Lookup(lookup) => lookup.collections().collect(),
            Self::GraphLookup(graph) => vec![graph.from()],
            Self::UnionWith(union) => union.collections().collect(),
            Self::Facet(facet) => facet.pipelines().flatten().flat_map(Self::collections).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether the stage returns documents in place of those of the collection. Such a stage is the first of
    /// its pipeline.
    pub fn is_source(&self) -> bool {
        matches!(self, Self::CollStats(_) | Self::Documents(_) | Self::IndexStats)
    }

    /// Returns whether the stage, or one within it, is one that `$facet` does not allow.
    pub(super) fn is_refused_in_facet(&self) -> bool {
        match self {
            Self::Facet(_) => true,
            Self::Lookup(lookup) => lookup.is_refused_in_facet(),
            Self::UnionWith(union) => union.stages().iter().any(Self::is_refused_in_facet),
            _ => self.is_source(),
        }
    }

    /// Returns `true` only if the stage returns one document for each of its input, in the same order, so that a following
    /// `$skip` or `$limit` can be applied before it. `false` is always correct.
    pub fn is_one_to_one(&self) -> bool {
        match self {
            Self::Project { .. } | Self::ReplaceRoot(_) | Self::GraphLookup(_) => true,
            Self::Lookup(lookup) => !lookup.is_unwound(),
            _ => false,
        }
    }

    /// Returns `true` only if a `$match` with this filter that follows the stage can be evaluated before it instead, with the
    /// same result. `false` is always correct.
    pub fn can_follow_match(&self, filter: &Filter) -> bool {
        match self {
            Self::Sort(_) => true,
            Self::Project { .. } | Self::Unwind(_) | Self::Lookup(_) | Self::GraphLookup(_) => {
                filter.all_paths(|path| self.preserves(path))
            }
            _ => false,
        }
    }

    /// Returns `true` only if a `$sort` that follows the stage can be done before it instead, with the same result.
    pub fn can_follow_sort(&self, sort: &Sort) -> bool {
        self.is_one_to_one() && sort.fields().iter().all(|(path, _)| self.preserves(path))
    }

    /// Returns the fields that the stage and the stages after it read. `after` is what the stages after it need of its documents.
    pub fn needs(&self, mut after: Needs) -> Needs {
        match self {
            Self::Match(filter) => after.add_filter(filter),
            Self::Project { projection, .. } => return projection.needs(after),
            Self::Sort(sort) => sort.fields().iter().for_each(|(path, _)| after.add_path(path)),
            Self::Limit(_) | Self::Skip(_) | Self::Sample(_) | Self::UnionWith(_) => {}
            Self::CollStats(_) | Self::Count(_) | Self::Documents(_) | Self::IndexStats => return Needs::NOTHING,
            Self::BucketAuto(stage) => return stage.needs(),
            Self::Densify(densify) => return densify.needs(after),
            Self::Facet(facet) => return facet.needs(),
            Self::GraphLookup(graph) => return graph.needs(after),
            Self::Group(group) => return group.needs(),
            Self::Redact(_) => return Needs::Whole,
            Self::ReplaceRoot(replace) => return replace.needs(),
            Self::Lookup(lookup) => return lookup.needs(after),
            Self::SetWindowFields(windows) => return windows.needs(after),
            Self::Unwind(unwind) => unwind.add_needs(&mut after),
        }
        after
    }

    /// Returns `true` only if each document that the stage returns has the same value at `path` as the document it was made
    /// from. `false` means that this is not known.
    pub fn preserves(&self, path: &Path) -> bool {
        match self {
            Self::Project { projection, .. } => projection.preserves(path),
            Self::Unwind(unwind) => unwind.preserves(path),
            Self::Lookup(lookup) => lookup.preserves(path),
            Self::GraphLookup(graph) => graph.preserves(path),
            Self::Match(_) | Self::Sort(_) | Self::Limit(_) | Self::Skip(_) | Self::Sample(_) => true,
            _ => false,
        }
    }
}

/// Returns whether `path` is `outer`, or the path of a field inside it.
pub(super) fn is_within(path: &Path, outer: &str) -> bool {
    path.as_str().strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Match(filter) => filter.fmt(f),
            Self::Project { document, .. } => write!(f, "{:?}", Doc::from(document)),
            Self::Sort(sort) => sort.fmt(f),
            Self::Limit(number) | Self::Skip(number) | Self::Sample(number) => number.fmt(f),
            Self::CollStats(stats) => stats.fmt(f),
            Self::IndexStats => f.write_str("{}"),
            Self::Count(name) => name.fmt(f),
            Self::BucketAuto(stage) => stage.fmt(f),
            Self::Densify(densify) => densify.fmt(f),
            Self::Documents(documents) => documents.fmt(f),
            Self::Facet(facet) => facet.fmt(f),
            Self::Lookup(lookup) => lookup.fmt(f),
            Self::GraphLookup(graph) => graph.fmt(f),
            Self::Group(group) => group.fmt(f),
            Self::Redact(redact) => redact.fmt(f),
            Self::ReplaceRoot(replace) => replace.fmt(f),
            Self::SetWindowFields(windows) => windows.fmt(f),
            Self::UnionWith(union) => union.fmt(f),
            Self::Unwind(unwind) => unwind.fmt(f),
        }
    }
}
