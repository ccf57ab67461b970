//! Builds a query from the leading stages, as long as a query can express them.

use slate_query::{expression::Needs, filter::Filter, path::Path, pipeline::Stage};

use super::{DocumentNode, Optimization, group_order};
use crate::plan::{Output, Query, Window};

/// Returns the query of the leading stages, with nodes for the other stages.
pub(super) fn query(stages: Vec<Stage>, optimization: Optimization) -> Query {
    let mut query = Query::of(Filter::all());
    let mut stages = stages.into_iter();
    let mut first = None;
    if optimization == Optimization::On {
        for stage in stages.by_ref() {
            first = absorb(&mut query, stage);
            if first.is_some() || !query.pipeline.nodes.is_empty() {
                break;
            }
        }
        if let (Output::Whole, Some(first)) = (&query.output, &first)
            && let Some(fields) = paths(&first.needs(Needs::of(stages.as_slice())))
        {
            if first.is_source() {
                // Nothing of the collection is read.
                query.window.limit = Some(0);
            } else if fields.is_empty() {
                count(&mut query, DocumentNode::Repeat);
            } else {
                query.output = Output::Fields(fields);
            }
        }
    }
    add_nodes(&mut query.pipeline.nodes, first.into_iter().chain(stages), optimization);
    query
}

/// Returns the paths of the needed fields; `None` for whole documents.
fn paths(needs: &Needs) -> Option<Box<[Path]>> {
    needs.fields()?.iter().map(|name| Path::parse(name).ok()).collect()
}

/// Converts stages to nodes and appends the nodes.
pub(super) fn add_nodes(
    nodes: &mut Vec<DocumentNode>,
    stages: impl Iterator<Item = Stage>,
    optimization: Optimization,
) {
    for stage in stages {
        let node = DocumentNode::of(stage, optimization);
        // The documents of an unwound array are returned without building the array.
        if optimization == Optimization::On
            && let (Some(DocumentNode::Lookup { lookup, .. }), DocumentNode::Unwind(unwind)) = (nodes.last_mut(), &node)
            && unwind.is_plain_on().is_some_and(|path| lookup.unwind(path))
        {
            continue;
        }
        match (nodes.last_mut(), node) {
            // A sort below a limit drops the rows beyond it.
            (Some(DocumentNode::Sort { limit, .. }), node @ DocumentNode::Slice(window))
                if optimization == Optimization::On =>
            {
                *limit = window.reach();
                nodes.push(node);
            }
            (Some(DocumentNode::Slice(window)), DocumentNode::Slice(next)) if optimization == Optimization::On => {
                *window = window.then(next);
                let window = *window;
                let below = nodes.len().checked_sub(2).and_then(|below| nodes.get_mut(below));
                if let Some(DocumentNode::Sort { limit, .. }) = below {
                    *limit = window.reach();
                }
            }
            (_, node) => nodes.push(node),
        }
    }
    if optimization == Optimization::On {
        group_order::unsorted(nodes);
    }
}

/// Adds the stage to the query. Returns it if the query cannot express it.
fn absorb(query: &mut Query, stage: Stage) -> Option<Stage> {
    let is_whole = matches!(query.output, Output::Whole);
    match stage {
        // A filter and a sort come before the query's window.
        Stage::Match(filter) if is_whole && query.window.is_all() => query.filter = query.filter.and(&filter),
        Stage::Sort(sort) if is_whole && query.window.is_all() => query.sort = Some(sort),
        Stage::Skip(skip) => slice(query, Window { skip, limit: None }),
        Stage::Limit(limit) => slice(query, Window { skip: 0, limit: Some(limit) }),
        Stage::Project { name: "$project", projection, document } if is_whole => {
            query.output = Output::Project { projection, document };
        }
        // Computed fields can fail, so they are not skipped.
        Stage::Count(name) if !computes(&query.output) => {
            count(query, DocumentNode::NameCount(name));
        }
        stage => return Some(stage),
    }
    None
}

/// Makes the query count its documents, for `node`.
fn count(query: &mut Query, node: DocumentNode) {
    query.output = Output::Count;
    // Without a window the order does not matter.
    if query.window.is_all() {
        query.sort = None;
    }
    query.pipeline.nodes.push(node);
}

fn computes(output: &Output) -> bool {
    match output {
        Output::Whole | Output::Key | Output::Fields(_) => false,
        Output::Project { projection, .. } => projection.computes(),
        Output::Count | Output::Distinct { .. } => true,
    }
}

fn slice(query: &mut Query, next: Window) {
    query.window = query.window.then(next);
}
