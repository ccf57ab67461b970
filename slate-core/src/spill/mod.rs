//! Rows that may exceed the memory limit of an operation. Rows beyond the limit are written to a temporary file.
//!
//! - [`Sorter`] sorts rows by their keys.
//! - [`FirstRows`] finds the first row of each key.
//! - [`Spool`] returns rows in the order in which they were pushed.
//! - [`KeySet`] detects keys that were seen before; beyond the limit it becomes a [`KeyOverflow`](key_set::KeyOverflow).
//!
//! Each writes to one anonymous file, which the operating system deletes when the last handle is closed, even if the
//! process is killed. Rows are bytes here: a key that orders them, and a payload.

mod arena;
mod counted_sort;
mod file;
mod first_rows;
mod key_set;
mod memory;
mod merge;
mod prefix_sort;
mod row;
mod runs;
mod sorter;
mod spool;

pub(crate) use counted_sort::sort_counted;
pub(crate) use first_rows::FirstRows;
pub(crate) use key_set::KeySet;
pub(crate) use memory::{Budget, DiskUse, Memory};
pub(crate) use row::Row;
pub(crate) use sorter::Sorter;
pub(crate) use spool::{Spool, SpoolRows, Spooled};
