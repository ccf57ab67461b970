//! Verification: compares the records of a collection with its indexes and its catalog entry, in both directions.
//!
//! ```text
//!            each record                        each index
//!   is a valid document?                   as many entries as records require?
//!   has the right field table?                    │ no
//!   lies under the key of its `_id`?              ▼
//!            │                              each entry: does its record exist,
//!            ▼                              and does the record require this entry?
//!   each entry that it requires:
//!   exists, with the right value?          flags (multikey, truncated) in the catalog
//!                                          where the entries need them?
//! ```
//!
//! Reading every entry is only necessary if there are too many: all required entries were found, so equal counts mean that
//! the index has no other. A sound collection costs one scan of its records, a point lookup for each entry, and a count of
//! each index.
//!
//! # What must stay true
//!
//! - **A fault is a result, not an error.** Errors of the call mean that the store failed or the call was interrupted. A fault goes into
//!   the [`VerifyReport`], and verification continues: one damaged record must not hide a second.
//! - **Expected entries are made by the code that writes them** ([`EntryMaker`](crate::write::EntryMaker)), from the document alone. Verification
//!   finds missing, surplus and changed entries. Whether entries are encoded correctly is what the property tests of `slate-query` and the
//!   forced-plans test check.
//! - **The field table of a record is not trusted.** Documents are read without it, because a wrong table would make correct entries look wrong. The
//!   table is compared with a newly built one.
//! - **Memory is bounded.** The report has the first 10,000 faults and the number of all.
//! - **One view.** Records and entries belong to one commit, so writers may continue; an index that is being built is
//!   skipped, because its entries are complete only with its last round.
//!
//! First, the store compares its data on the device with its own checksums ([`Store::check`](slate_store::Store::check)). On redb, which does not
//! compare checksums when it reads, this finds every changed bit of every page in use.
//!
//! Uniqueness needs no check: the key of an entry in a unique index is the store's key, so two records cannot have the same one.

mod run;
mod salvage;
mod storage;

pub use run::{VerifyFinding, VerifyFindingKind, VerifyProgress, VerifyReport};
pub(crate) use run::{VerifyRun, verify};
pub(crate) use salvage::salvage;
pub(crate) use storage::{unreadable, verify_storage};
