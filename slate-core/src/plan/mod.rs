//! From a question to a plan.
//!
//! A plan is plain data. [`build`] starts from the naive plan, which is right by construction (scan, filter, sort,
//! slice, project), and hands it through the [`rules`] in order, each of which rewrites it in place.

mod access;
mod bounds;
mod build;
mod candidates;
mod choose;
mod conjuncts;
mod cost;
mod draw;
mod growing;
mod measures;
mod node;
mod query;
pub(crate) mod rules;
mod table;

pub(crate) use access::{Access, AccessPath, is_leaf_in_id_order, leaf_order};
pub(crate) use bounds::{ByteRange, IndexBounds, component_ranges, record_ranges};
pub(crate) use build::{Context, Probe, build, candidate_count};
pub(crate) use choose::MAX_UNWEIGHED_ENTRIES;
pub(crate) use conjuncts::Conjuncts;
pub(crate) use draw::Drawing;
pub(crate) use measures::{Analysis, Measures};
pub(crate) use node::{Combine, CountedKeys, CoveredField, IdPlan, IndexScan, Plan, RawPlan, Values, Window};
pub(crate) use query::{Force, Hint, Output, Query, Ties};
