//! Makes a query of the leading stages, as long as a query can express them.

use slate_query::{filter::Filter, pipeline::Stage};

use super::{DocumentNode, Nodes, Optimization};
use crate::plan::{Output, Query, Window};

/// Returns the query of the leading stages, with the nodes of the others.
pub(super) fn query(stages: Vec<Stage>, optimization: Optimization) -> Query {
    let mut query = Query::of(Filter::all());
    let mut nodes: Vec<DocumentNode> = Vec::new();
    for stage in stages {
        let left = match optimization {
            Optimization::On if nodes.is_empty() => absorb(&mut query, stage),
            Optimization::On | Optimization::Off => Some(stage.into()),
        };
        let Some(node) = left else { continue };
        match (nodes.last_mut(), node) {
            // A sort below a limit holds only the rows within it.
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
    query.pipeline = Nodes { nodes, rules: Vec::new() };
    query
}

/// Adds the stage to the query. Returns its node if the query cannot express it.
fn absorb(query: &mut Query, stage: Stage) -> Option<DocumentNode> {
    let is_whole = matches!(query.output, Output::Whole);
    match stage {
        // A filter and a sort come before the query's window.
        Stage::Match(filter) if is_whole && query.window().is_all() => {
            query.filter = query.filter.and(&filter);
            None
        }
        Stage::Sort(sort) if is_whole && query.window().is_all() => {
            query.sort = Some(sort);
            None
        }
        Stage::Skip(skip) => slice(query, Window { skip, limit: None }),
        Stage::Limit(limit) => slice(query, Window { skip: 0, limit: Some(limit) }),
        Stage::Project { name: "$project", projection, document } if is_whole => {
            query.output = Output::Project { projection, document };
            None
        }
        // Computed fields can fail, so they are not skipped.
        Stage::Count(name) if !computes(&query.output) => {
            query.output = Output::Count;
            // Without a window the order does not matter.
            if query.window().is_all() {
                query.sort = None;
            }
            Some(DocumentNode::NameCount(name))
        }
        stage => Some(stage.into()),
    }
}

fn computes(output: &Output) -> bool {
    match output {
        Output::Whole => false,
        Output::Project { projection, .. } => projection.computes(),
        Output::Count | Output::Distinct { .. } => true,
    }
}

fn slice(query: &mut Query, next: Window) -> Option<DocumentNode> {
    let window = query.window().then(next);
    (query.skip, query.limit) = (window.skip, window.limit);
    None
}
