//! What operations do when their rows outgrow memory: sorted runs in temporary files, merged when read.
//!
//! A [`Sorter`] orders rows, and [`FirstRows`] takes one of those with a key; a [`Spool`] keeps their order; a [`KeySet`]
//! finds repeated keys, and a [`KeyOverflow`] takes over from it. Each holds what its [`Memory`] allows and writes the rest to one anonymous file, which the
//! operating system removes when the last handle is dropped, be it by an error, a panic or a killed process.
//!
//! Nothing here knows documents: a row is a key that orders it and a payload, both bytes.

mod arena;
mod file;
mod first_rows;
mod key_set;
mod memory;
mod merge;
mod row;
mod runs;
mod sorter;
mod spool;

pub(crate) use first_rows::FirstRows;
pub(crate) use key_set::KeySet;
pub(crate) use memory::{Memory, Spilled};
pub(crate) use row::Row;
pub(crate) use sorter::Sorter;
pub(crate) use spool::{Spool, SpoolRows};
