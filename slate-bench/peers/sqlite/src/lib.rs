//! SQLite under Slate's database workload, as somebody who knows it well would use it.
//!
//! - A table per user, `records_1 (_id INTEGER PRIMARY KEY, doc BLOB)`: the document is JSONB without `_id`.
//! - The two indexes are over expressions, `doc ->> '$.status'` and `doc ->> '$.contacts_count'`, which SQLite also answers
//!   from without the table where it needs nothing else.
//! - Documents are written as JSON text through `jsonb(…)`: its documentation asks programs not to make JSONB themselves.
//! - Rows are read as `_id` and the JSONB as it lies in the page cache, borrowed from the statement: that is the least SQLite
//!   can do, and less than most programs want of it.
//! - Statements are prepared once and cached, values bound.
//!
//! Whether `ANALYZE` has been run matters to few rows, but to those a lot: `SELECT DISTINCT` over an index reads the whole
//! index without, and skips from value to value with it. So there are programs for both.

mod database;
mod sql;
mod subject;

pub use database::{Place, Sqlite, Statistics};
