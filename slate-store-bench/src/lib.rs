//! The store benchmark: bare keys and values on Slate's stores and on other stores, and small documents for comparison
//! with bison-db.
//!
//! ```text
//! Subject (Slate on a backend, or a peer) ─┐
//! workload: one file per table ────────────┴→ Bench: checks each result, measures each row ─→ Report
//! ```
//!
//! | section | based on |
//! |---|---|
//! | `raw` | the operations of the store contract |
//! | `lsm-db`, `txn-db`, `byodb` | that project's own benchmark: the same keys, values, counts and threads |
//! | `pinned` | readers on one core, a writer on another |
//! | `documents` | bison-db's own benchmark: collections instead of keys and values |
//!
//! A wrong result fails the run after all rows have been measured.

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
