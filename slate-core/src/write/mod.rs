//! Writes: what changes in a collection's records and, entry by entry, in its indexes.

mod after_commit;
mod backfill;
mod batch;
mod build;
mod bulk;
mod changes;
mod delete;
mod entries;
mod insert;
mod involved;
mod prepare;
mod put;
mod session;
mod update;

pub(crate) use after_commit::{AfterCommit, StaleCollection};
pub(crate) use backfill::{BuildRound, BuildStart};
pub(crate) use build::{BuildProgress, IndexSpec, ROUND as BUILD_ROUND};
pub(crate) use bulk::{BulkOperation, BulkOutcome};
pub(crate) use delete::{DeleteOutcome, DeleteRequest, Shows};
pub(crate) use entries::{Entries, EntryMaker};
pub(crate) use insert::{InsertMode, InsertOutcome};
pub(crate) use put::{PutKind, PutOutcome};
pub(crate) use session::{BeginOptions, Created, Reads, Session, Shared};
pub(crate) use update::{IfNone, IfRefused, UpdateKind, UpdateOutcome, UpdateRequest};
