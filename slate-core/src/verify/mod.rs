//! Verification: each document is validated, the entries that it should have are made by the write path's own code and looked up, and
//! each index is searched for entries that belong to no document.

mod run;

pub use run::{VerifyFinding, VerifyFindingKind, VerifyProgress, VerifyReport};
pub(crate) use run::{VerifyRun, verify};
