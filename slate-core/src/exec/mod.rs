//! Runs a plan over a view: one cursor per node, each lending its current row.
//!
//! Generic over the view and so instantiated per backend; erased once, on top, as [`Rows`].

mod covered;
mod distinct;
mod fetch;
mod filter;
mod ids;
mod keys;
mod output;
mod probe;
mod rows;
mod scan;
mod slice;
mod sort;
mod targets;

pub(crate) use output::{Rows, open};
pub(crate) use probe::ViewProbe;
pub(crate) use rows::RawRows;
pub(crate) use targets::{Target, targets};
