//! The nodes of plans, a file for each tier: its enum, and for each node one [`Description`] of everything that a plan knows of it.
//!
//! Walks over a plan, such as drawing it, measuring it and sharing memory among its nodes, are written once, over descriptions
//! (`node.rs`). The nodes of the document tier are in `plan/pipeline/node.rs`.

mod ids;
mod index_scan;
mod node;
mod output;
mod raw;
mod window;

pub(crate) use ids::{Combine, IdPlan};
pub(crate) use index_scan::IndexScan;
pub(super) use node::Description;
pub(crate) use node::{Node, Stage};
pub(crate) use output::{CountedKeys, CoveredField, Plan, Values};
pub(crate) use raw::RawPlan;
pub(crate) use window::Window;
pub(super) use window::pipeline_window;
