//! SQLite under Slate's database workload, as an experienced user would use it.
//!
//! - One table per user, `records_1 (_id INTEGER PRIMARY KEY, doc BLOB)`. The document is JSONB without `_id`.
//! - Two expression indexes, on `doc ->> '$.status'` and `doc ->> '$.contacts_count'`. SQLite answers from an index
//! alone where it can.
//! - Documents are written as JSON text through `jsonb(…)`: SQLite's documentation asks programs not to construct
//! JSONB.
//! - Rows are read as `_id` and JSONB, borrowed from the statement. This is the least work for SQLite, and less than
//! most programs need.
//! - Typed documents are JSON text in a separate table, through `serde_json` and a struct.
//! - Statements are prepared once and cached; values are bound.
//!
//! `ANALYZE` affects few rows, but strongly: `SELECT DISTINCT` over an index reads the whole index without it, and
//! seeks from value to value with it. There are programs for both.

mod aggregation;
mod database;
mod sql;
mod subject;
mod typed;

pub use database::{Place, Sqlite, Statistics};
