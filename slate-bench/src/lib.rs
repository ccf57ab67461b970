//! The database benchmark: one workload, its answers known beforehand, on every store of Slate's and on its peers.
//!
//! A database implements [`Subject`]; the rest is here. Peers' programs depend on this crate without its features, so that
//! nothing of Slate is linked into them.
//!
//! | module | has |
//! |---|---|
//! | [`records`] | the records: made from a seed, each by itself |
//! | [`field`] | their fields and values, with BSON's order |
//! | [`workload`] | the rows: questions and writes as plain data |
//! | [`expected`] | what each question's answer is, by brute force |
//! | [`check`] | an answer compared with that |
//! | [`subject`] | what a database implements |
//! | [`json`] | records as JSON, for databases that hold that |
//! | [`peak`] | peaks of memory, each in a process of its own |
//! | [`run`](mod@run) | the run: load, ask, write, check, measure |

pub mod check;
pub mod expected;
pub mod field;
pub mod json;
pub mod options;
pub mod peak;
pub mod program;
pub mod records;
pub mod run;
#[cfg(feature = "slate")]
pub mod slate;
pub mod subject;
pub mod workload;

pub use check::Fetched;
pub use field::{Field, Order, Value};
pub use options::Options;
pub use records::{Change, Patch, Record};
pub use slate_bench_harness as harness;
pub use subject::{Answer, Consume, Subject, Work};
pub use workload::{Condition, Find, Query, Test};
