//! The store benchmark: bare keys and values on every store of Slate's and on its peers, and small documents as a document
//! store among those peers is measured.
//!
//! ```text
//! Subject (Slate on a backend, or a peer) ─┐
//! workload: one file per table ────────────┴→ Bench: each answer checked, each row timed ─→ Report
//! ```
//!
//! | section | what it follows |
//! |---|---|
//! | `raw` | nobody's table: what the store contract offers, call by call |
//! | `lsm-db`, `txn-db`, `byodb` | the table of that peer: the same keys, values, counts and threads |
//! | `pinned` | readers on one core beside a writer on another |
//! | `documents` | bison-db's tables: collections, not keys and values |
//!
//! A row whose answer is wrong fails the run, after all rows are through.

mod bench;
mod documents;
mod keys;
mod main_program;
#[cfg(all(test, feature = "slate"))]
mod smoke;
mod subject;
mod workload;

#[cfg(feature = "slate")]
pub mod slate;

pub use documents::{Documents, Payload, Small};
pub use main_program::{run_all, run_documents, run_keys_and_values};
pub use subject::{Direction, Durability, Feature, Outcome, Reader, Subject, Writer};
