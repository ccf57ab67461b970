//! `$setWindowFields`: values computed for each document from the documents around it.
//!
//! A [`Partition`] holds what the functions read of its documents, in their order: the operands and the sort keys. A
//! [`Frame`](frame::Frame) says which of them belong to the window of a document.

mod accumulate;
mod call;
mod frame;
mod function;
mod parse;
mod partition;
mod partition_key;
mod rate;
mod running;
mod series;

pub(crate) use call::names;
pub use parse::Windows;
pub(super) use parse::parse;
pub use partition::{Partition, Results};
pub use partition_key::CurrentPartition;
pub use running::RunningResults;
