//! The database benchmark: one workload with known results, run on Slate's stores and on other databases.
//!
//! A database implements [`Subject`]; this crate contains everything else. Programs for other databases depend on this
//! crate without its features, so that they do not link Slate.
//!
//! | module | contents |
//! |---|---|
//! | [`aggregation`] | aggregations as pipelines and SQL, with their answers |
//! | [`records`] | the records, each generated from the seed independently of the others |
//! | [`field`] | their fields and values, with BSON's order |
//! | [`workload`] | the rows: queries and writes as plain data |
//! | [`expected`] | the expected results, by brute force |
//! | [`check`] | comparison with the expected results |
//! | [`typed`] | the records as structs, and the operations on them |
//! | [`subject`] | the trait that a database implements |
//! | [`json`] | records as JSON |
//! | [`peak`] | peak memory, measured in separate processes |
//! | [`run`](mod@run) | loads, queries, writes, checks and measures |

pub mod aggregation;
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
#[cfg(feature = "slate")]
mod slate_async;
#[cfg(feature = "slate")]
mod slate_changes;
pub mod subject;
pub mod typed;
pub mod workload;

pub use check::Fetched;
pub use field::{Field, Order, Value};
pub use options::{Ids, Options, Setup};
pub use records::{Change, Patch, Record};
pub use slate_bench_harness as harness;
pub use subject::{Answer, Consume, Subject, Work};
pub use typed::{ThreeFields, TypedBatch, TypedRecord, TypedTask};
pub use workload::{Condition, Find, Query, Test};
