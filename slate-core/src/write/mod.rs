//! Writes. Inserts, upserts, updates, deletes and index builds go through the same stages:
//!
//! 1. Prepare: each document is validated and encoded, and its index entries are made ([`prepare`]).
//! 2. Load: the records and keys that the call depends on are read in batches, or lent by the plan that finds them.
//! 3. Collect: the changes of the whole call become a [`change_set`]. Nothing is written yet: an error before step 5 leaves
//!    the transaction unchanged.
//! 4. Check: no key of a unique index may belong to two records in the final state ([`unique`]).
//! 5. Apply: the changes are written in key order ([`apply`]). Only the storage can fail here; such an error ends the
//!    transaction.

mod apply;
mod backfill;
mod build;
mod bulk;
mod call_events;
mod change_set;
mod collection_state;
mod definitions;
mod delete;
mod entries;
mod expire;
mod insert;
mod key_place;
mod outcome;
mod prepare;
mod put;
mod rows;
mod session;
mod unique;
mod update;

pub(crate) use backfill::{BuildRound, BuildStart, BuildSteps};
pub(crate) use build::{
    BuildProgress, IndexSpec, ROUND as BUILD_ROUND, check_id_index, hidden_id_index, not_of_id_index,
};
pub(crate) use bulk::{BulkOperation, BulkOutcome};
pub(crate) use collection_state::{AfterCommit, StaleCollection, StatisticsStaleness};
pub(crate) use definitions::{CollectionSpec, Created, ValidatorSpec, ViewSpec, Visibility, parse_collation};
pub(crate) use delete::{DeleteOutcome, DeleteRequest, Shows};
pub(crate) use entries::Entries;
pub(crate) use expire::ExpireOutcome;
pub(crate) use insert::{InsertMode, InsertOutcome};
pub(crate) use key_place::key_place;
pub(crate) use outcome::WriteOutcome;
pub(crate) use prepare::EntryMaker;
pub(crate) use put::{PutKind, PutOutcome};
pub(crate) use session::{BeginOptions, Confirmed, Reads, Session, Shared};
pub(crate) use update::{UpdateKind, UpdateOutcome, UpdateRequest};
