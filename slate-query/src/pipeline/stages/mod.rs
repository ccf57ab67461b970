//! The stages, one per file, and the table of their names.

mod add_fields;
mod bucket;
mod bucket_auto;
mod coll_stats;
mod count;
mod densify;
mod documents;
mod facet;
mod fill;
mod graph_lookup;
mod group;
mod index_stats;
mod limit;
mod lookup;
mod matching;
mod project;
mod redact;
mod replace_root;
mod sample;
mod skip;
mod sort;
mod sort_by_count;
mod union_with;
mod unset;
mod unwind;

use super::Stage;
use crate::{
    Code, Error, Result,
    expression::Bindings,
    raw::{Doc, Value},
};

pub use bucket_auto::{BucketAuto, Buckets};
pub use coll_stats::CollStats;
pub use densify::{DenseRows, Densify};
pub use documents::Documents;
pub use facet::Facet;
pub use graph_lookup::GraphLookup;
pub use group::{Group, GroupStates, Member};
pub use lookup::{Join, Lookup};
pub use redact::Redact;
pub use replace_root::ReplaceRoot;
pub use union_with::UnionWith;
pub use unwind::{Unwind, UnwoundRows};

/// How a stage is parsed.
#[derive(Clone, Copy)]
enum Known {
    Offered(fn(Value<'_>, &Bindings) -> Result<Stage>),
    /// Parsed as several stages, or as a different stage.
    Composed(fn(Value<'_>, &Bindings) -> Result<Vec<Stage>>),
    /// A [`Sink`](crate::sink::Sink), which is only valid at the end of a pipeline.
    Last,
    /// `$changeStream`, which opens a stream and belongs to no pipeline of documents.
    Watch,
    /// Fails with the stage's name.
    Unsupported,
}

use Known::{Composed, Last, Offered, Unsupported, Watch};

/// Every stage of MongoDB 8.2, sorted by name.
static STAGES: &[(&str, Known)] = &[
    ("$addFields", Offered(add_fields::parse)),
    ("$bucket", Composed(bucket::parse)),
    ("$bucketAuto", Offered(bucket_auto::parse)),
    ("$changeStream", Watch),
    ("$changeStreamSplitLargeEvent", Unsupported),
    ("$collStats", Offered(coll_stats::parse)),
    ("$count", Offered(count::parse)),
    ("$currentOp", Unsupported),
    ("$densify", Composed(densify::parse)),
    ("$documents", Offered(documents::parse)),
    ("$facet", Offered(facet::parse)),
    ("$fill", Composed(fill::parse)),
    ("$geoNear", Unsupported),
    ("$graphLookup", Offered(graph_lookup::parse)),
    ("$group", Composed(group::parse)),
    ("$indexStats", Offered(index_stats::parse)),
    ("$limit", Offered(limit::parse)),
    ("$listClusterCatalog", Unsupported),
    ("$listLocalSessions", Unsupported),
    ("$listSampledQueries", Unsupported),
    ("$listSearchIndexes", Unsupported),
    ("$listSessions", Unsupported),
    ("$lookup", Offered(lookup::parse)),
    ("$match", Offered(matching::parse)),
    ("$merge", Last),
    ("$out", Last),
    ("$planCacheStats", Unsupported),
    ("$project", Offered(project::parse)),
    ("$querySettings", Unsupported),
    ("$queryStats", Unsupported),
    ("$rankFusion", Unsupported),
    ("$redact", Offered(redact::parse)),
    ("$replaceRoot", Offered(replace_root::parse)),
    ("$replaceWith", Offered(replace_root::parse_with)),
    ("$sample", Offered(sample::parse)),
    ("$scoreFusion", Unsupported),
    ("$search", Unsupported),
    ("$searchMeta", Unsupported),
    ("$set", Offered(add_fields::parse)),
    ("$setWindowFields", Composed(super::window::parse)),
    ("$shardedDataDistribution", Unsupported),
    ("$skip", Offered(skip::parse)),
    ("$sort", Offered(sort::parse)),
    ("$sortByCount", Composed(sort_by_count::parse)),
    ("$unionWith", Offered(union_with::parse)),
    ("$unset", Offered(unset::parse)),
    ("$unwind", Offered(unwind::parse)),
    ("$vectorSearch", Unsupported),
];

/// Returns the names of the supported stages.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    STAGES.iter().filter(|(_, known)| !matches!(known, Unsupported | Watch)).map(|(name, _)| *name)
}

fn known(name: &str) -> Option<Known> {
    let place = STAGES.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    STAGES.get(place).map(|(_, known)| *known)
}

/// Returns whether MongoDB has a stage of this name.
pub(crate) fn is_stage(name: &str) -> bool {
    known(name).is_some()
}

pub(super) fn parse(name: &str, argument: Value<'_>, bindings: &Bindings) -> Result<Vec<Stage>> {
    match known(name) {
        Some(Offered(parse)) => parse(argument, bindings).map(|stage| vec![stage]),
        Some(Composed(parse)) => parse(argument, bindings),
        Some(Last) => Err(Error::new(NOT_LAST, format!("{name} can only be the final stage in the pipeline"))),
        Some(Watch) => {
            let message =
                format!("{name} is only valid as the first stage of the command aggregate; the method is watch");
            Err(Error::new(NOT_FIRST, message))
        }
        Some(Unsupported) => Err(Error::unsupported(name)),
        None => Err(Error::new(Code(40_324), format!("Unrecognized pipeline stage name: '{name}'"))),
    }
}

/// Parses the stages of a pipeline within `stage`. Refuses stages that write, and change streams, with this code.
fn parse_within(stage: &str, code: i32, stages: Doc<'_>, bindings: &Bindings) -> Result<Vec<Stage>> {
    if stages.values().filter_map(Value::as_document).any(|stage| stage.get("$changeStream").is_some()) {
        return Err(Error::new(Code(code), format!("$changeStream is not allowed within {stage}")));
    }
    super::parse(stages.values(), bindings).map_err(|error| match error.code() {
        NOT_LAST => Error::new(Code(code), format!("$out and $merge are not allowed within {stage}")),
        _ => error,
    })
}

/// The error code for a `$out` or `$merge` that is not the last stage.
const NOT_LAST: Code = Code(40_601);

/// The error code for a stage that can only be the first.
pub(super) const NOT_FIRST: Code = Code(40_602);

/// Returns whether a pipeline begins with `$documents`, so that it reads no collection.
fn documents_first(stages: &[Stage]) -> bool {
    matches!(stages.first(), Some(Stage::Documents(_)))
}

/// Returns the error for a join that names a collection although its pipeline begins with `$documents`.
fn own_documents(stage: &str) -> Error {
    Error::new(Code::FAILED_TO_PARSE, format!("{stage} names no collection if its pipeline begins with $documents"))
}

#[cfg(test)]
mod tests {
    use super::STAGES;

    #[test]
    fn the_table_is_sorted_and_names_no_stage_twice() {
        assert!(STAGES.is_sorted_by(|(a, _), (b, _)| a < b));
    }
}
