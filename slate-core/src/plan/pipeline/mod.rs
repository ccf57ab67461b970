//! Pipelines in the planner: the document tier above the output tier.
//!
//! [`query`] rewrites the stages of a pipeline by the [`rules`], then makes a query of them: leading `$match`, `$sort`,
//! `$skip`, `$limit`, `$project` and `$count` become the query's own filter, order, window and output, which the planner
//! serves by indexes as it serves a `find`. The other stages become [`DocumentNode`]s, which are executed on its rows in
//! their order.

mod absorb;
mod facet;
mod group_order;
mod node;
mod return_key;
mod rules;

use slate_query::pipeline::Stage;

pub(super) use group_order::{by_end, by_end_of_leading, by_key};
pub(crate) use node::{DocumentNode, GroupOrder, GroupResult, Nodes};
pub(super) use return_key::add_to as add_return_key;

use super::Query;

/// Builds the query that executes a pipeline.
pub(crate) fn query(mut stages: Vec<Stage>, optimization: Optimization) -> Query {
    let mut rewritten: Vec<&'static str> = Vec::new();
    if optimization == Optimization::On {
        rules::rewrite(&mut stages, &mut |rule| {
            if !rewritten.contains(&rule) {
                rewritten.push(rule);
            }
        });
    }
    let mut query = absorb::query(stages, optimization);
    query.pipeline.rules = rewritten;
    query
}

/// Whether a pipeline is rewritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Optimization {
    #[default]
    On,
    /// Every stage is executed as written, on all documents of the collection. Tests compare the results.
    #[cfg_attr(not(feature = "unstable-testing"), expect(dead_code, reason = "only tests turn optimization off"))]
    Off,
}
