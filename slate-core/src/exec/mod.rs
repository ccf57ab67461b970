//! Executes plans over a view: each node is a cursor that lends its current row until its next move.
//!
//! The nodes are generic over the view and compiled once per backend. The type is erased once, at the top, as [`Rows`].

mod analyze;
mod covered;
mod distinct;
mod distinct_keys;
mod entry_test;
pub(crate) mod express;
mod fetch;
mod gather;
mod ids;
mod keys;
mod merge;
mod meter;
mod output;
mod pipeline;
mod resources;
mod rows;
mod scan;
mod sort;
mod targets;
mod walk;

pub(crate) use analyze::analyze;
pub(crate) use gather::gather;
pub(crate) use output::{Rows, open};
pub(crate) use resources::Resources;
pub(crate) use rows::RawRows;
pub(crate) use targets::{Target, visit_targets};
