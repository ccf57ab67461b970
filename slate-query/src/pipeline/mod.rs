//! Aggregation pipelines: stages parsed into plain data.
//!
//! To add a stage, write a file in `stages/` with a function `parse` and a doc comment that describes the stage. Add its
//! `mod` line, its variant of [`Stage`], and its line in the table in `stages/mod.rs`. Stages that MongoDB has and Slate
//! does not offer are in the table too, and fail by name.

mod group_index;
mod kept;
mod merge;
mod needs;
mod nested;
mod parse;
mod shown_argument;
mod stage;
mod stages;
mod window;

pub use kept::Kept;
pub(crate) use parse::check_collection;
pub use parse::{not_first, parse};
use shown_argument::shown_argument;
pub use stage::Stage;
pub use stages::{
    BucketAuto, Buckets, CollStats, DenseRows, Densify, Documents, Facet, GraphLookup, Group, GroupStates, Join,
    Lookup, Member, Redact, ReplaceRoot, UnionWith, Unwind, UnwoundRows,
};
pub(crate) use stages::{is_stage, names as stage_names};
pub(crate) use window::names as window_function_names;
pub use window::{CurrentPartition, Partition, Results, RunningResults, Windows};
