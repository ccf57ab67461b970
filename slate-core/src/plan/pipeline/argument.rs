use bson::{Bson, Document, doc};
use slate_query::raw::Doc;

use super::DocumentNode;
use crate::{
    document::number,
    plan::{
        Stage,
        mongo_fields::{bson, condition, sort_pattern, value},
    },
};

/// Returns the name and the argument of a pipeline's stage, as MongoDB's `explain` shows it.
pub(in crate::plan) fn argument(node: &DocumentNode, stage: Stage) -> (&'static str, Bson) {
    match node {
        DocumentNode::Match(filter) => ("$match", condition(filter).into()),
        DocumentNode::Project { document, .. } => {
            let name = if stage == Stage::Projection { "$project" } else { "$addFields" };
            (name, bson(Doc::from(document)).into())
        }
        DocumentNode::Sort { sort, limit } => {
            let mut argument = doc! { "sortKey": sort_pattern(sort) };
            if let Some(limit) = limit {
                argument.insert("limit", number(*limit));
            }
            ("$sort", argument.into())
        }
        DocumentNode::Slice(window) if stage == Stage::Skip => ("$skip", number(window.skip)),
        DocumentNode::Slice(window) => ("$limit", number(window.limit.unwrap_or_default())),
        DocumentNode::Sample(size) => ("$sample", doc! { "size": number(*size) }.into()),
        DocumentNode::Count(name) | DocumentNode::NameCount(name) => ("$count", (&**name).into()),
        DocumentNode::Facet { facets, .. } => {
            let mut shown = Document::new();
            for (name, nodes) in facets {
                // Stages that read no field are fed by a count.
                let fed = matches!(nodes.as_slice(), [DocumentNode::Count(_), DocumentNode::Repeat, ..]);
                let stages = nodes.iter().skip(if fed { 2 } else { 0 }).flat_map(|node| {
                    let mut stages: Vec<Document> = node
                        .stages()
                        .map(|stage| {
                            let (name, argument) = argument(node, stage);
                            doc! { name: argument }
                        })
                        .collect();
                    stages.reverse();
                    stages
                });
                shown.insert(&**name, stages.collect::<Vec<_>>());
            }
            ("$facet", shown.into())
        }
        DocumentNode::BucketAuto(stage) => ("$bucketAuto", value(stage.argument())),
        DocumentNode::CollStats(stage) => ("$collStats", value(stage.argument())),
        DocumentNode::Densify(stage) => ("$densify", value(stage.argument())),
        DocumentNode::Documents(stage) => ("$documents", value(stage.argument())),
        DocumentNode::GraphLookup { graph, .. } => ("$graphLookup", value(graph.argument())),
        DocumentNode::Group { group, .. } => ("$group", value(group.argument())),
        DocumentNode::IndexStats => ("$indexStats", Document::new().into()),
        DocumentNode::Lookup { lookup, .. } => ("$lookup", value(lookup.argument())),
        DocumentNode::Redact(stage) => ("$redact", value(stage.argument())),
        DocumentNode::ReplaceRoot(stage) => ("$replaceRoot", doc! { "newRoot": value(stage.argument()) }.into()),
        DocumentNode::SetWindowFields(stage) => ("$setWindowFields", value(stage.argument())),
        DocumentNode::UnionWith { union, .. } => ("$unionWith", value(union.argument())),
        DocumentNode::Unwind(stage) => ("$unwind", value(stage.argument().as_value())),
        // No stage stands for this node, so it is shown as a `$match` of everything.
        DocumentNode::Repeat => ("$match", Document::new().into()),
    }
}
