//! The planner: turns a query into a plan.
//!
//! A plan is plain data in three tiers with three types: record ids ([`IdPlan`]), raw records ([`RawPlan`]) and the output ([`Plan`]). For each
//! access path that can serve the query there is a [`candidate`], which is correct by construction (read, filter, sort, slice, project). The
//! [`rules`] are applied to each candidate in order; none changes its result. The cheapest candidate becomes the plan.
//!
//! A pipeline adds a fourth tier, of documents, above the output; see [`pipeline`].
//!
//! A new node is a variant in the file of its tier ([`nodes`]; `pipeline/node.rs` for documents). The compiler then reports what is missing: its
//! description in the same file (what `explain` shows and counts), the arm in `exec` that opens its operator, and in the raw tier its order.

mod access;
mod bounds_text;
mod build;
mod candidate;
mod candidates;
mod checks;
mod data;
mod draw;
mod explained;
mod hinted_keys;
mod keys_only;
mod measures;
mod mongo_fields;
mod nodes;
mod pipeline;
mod reads;
mod rules;
mod shape;
mod shown;
mod shown_text;
mod table;

pub(crate) use access::{
    Access, AccessPath, Conjuncts, IndexBounds, component_range, component_ranges, is_leaf_in_id_order, record_ranges,
};
pub(crate) use build::{Context, MAX_UNWEIGHED_ENTRIES, Planned, build, candidate_count};
pub(crate) use candidates::narrows;
pub(crate) use checks::{Checks, EntryFilter};
pub(crate) use data::{Force, ForeignView, Output, Query, Ties, sort_by_id};
pub(crate) use draw::Drawing;
pub(crate) use explained::Explained;
pub(crate) use hinted_keys::KeyLimits;
pub(crate) use measures::{Analysis, Measures};
pub(crate) use mongo_fields::{bson, with_operators};
pub(crate) use nodes::{
    Combine, CountedKeys, CoveredField, IdPlan, IndexScan, Node, Plan, RawPlan, Stage, Values, Window,
};
pub(crate) use pipeline::{DocumentNode, GroupOrder, GroupResult, Nodes, Optimization, query as pipeline_query};
use rules::FiredRules;
