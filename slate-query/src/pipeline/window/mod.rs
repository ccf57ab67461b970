//! `$setWindowFields`: values computed for each document from the documents around it.
//!
//! A [`Frame`](frame::Frame) says which documents of a partition belong to the window of a document. A [`Partition`] holds the operands and the sort
//! keys that the functions read from the documents, until no later result needs them.

mod accumulate;
mod call;
mod column;
mod decided;
mod frame;
mod function;
mod parse;
mod partition;
mod partition_key;
mod ranked;
mod rate;
mod running;
mod scale;
mod series;

pub(crate) use call::names;
pub use parse::Windows;
pub(super) use parse::parse;
pub use partition::{Partition, Results};
pub use partition_key::CurrentPartition;
pub use running::RunningResults;
