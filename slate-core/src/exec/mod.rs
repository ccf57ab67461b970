//! Executes plans over a view.
//!
//! A plan is a tree of nodes, and each becomes a cursor, the [`Rows`] of an operator: [`advance`](Rows::advance) moves it to its next
//! row, for which it moves its input as often as needed; [`current`](Rows::current) lends the row. The filter `{active: true}` over an
//! index on `city`, sorted by `name`:
//!
//! ```text
//! plan                          executor                      lends
//! SORT { name: 1 }              SortRows       sort.rs        a row that it holds in memory or in a temporary file
//! └─ FILTER { active: true }    FilterRows     rows.rs        what its input lends
//!    └─ FETCH                   FetchRows      fetch.rs       a record of the batch that it loaded from the store
//!       └─ INDEX SCAN city_1    IdRows         ids.rs         batches of record keys
//!                               └─ EntryWalk   ids.rs         the index entry at the position of a store's cursor
//! ```
//!
//! The tiers of a plan are types, and so are those of their rows:
//!
//! | tier | plan | rows | opened by | a row is |
//! |---|---|---|---|---|
//! | ids | `IdPlan` | `IdRows` | ids.rs | a record's key |
//! | raw records | `RawPlan` | [`RecordRows`](rows::RecordRows) | open.rs | a [`Record`](rows::Record): its key and its stored bytes |
//! | output | `Plan` | [`Rows`] | open.rs | a document of the result |
//! | documents | `Plan::Pipeline` | [`Rows`] | [`pipeline`] | a document, made by the stages so far |
//!
//! Every [`RecordRows`](rows::RecordRows) is also [`Rows`]: the record's document. Filter, slice, sort and the wrapper that measures are
//! written once, over any input, and pass on records if their input has records.
//!
//! # What must stay true
//!
//! - **A row is lent until the next move.** A node that needs it longer copies it into a type of [`spill`](crate::spill), so that
//!   it counts towards the memory limit. A node that only rejects, skips or counts rows copies nothing: a rejected record
//!   costs no allocation, which `tests/allocations.rs` checks.
//! - **All nodes of a query read one view.** Entries and records therefore belong together, and an index entry without its
//!   record is damage, not a race. An `_id` of the filter without a record is simply no match; [`Promise`](ids::Promise) tells
//!   the two apart.
//! - **Rows and their order depend on the plan and the data alone.** The store, the memory limit and the sizes of batches
//!   change when something is read, never what is returned. `tests/forced_plans.rs` executes every possible plan of a query.
//! - **Every loop that can be long calls [`tick`](crate::interrupt::Interrupt::tick)**, so that a deadline or a cancellation
//!   ends it. A node that passes on its input's rows need not, because the input does.
//! - **Keys and documents are counted when they are read**, by the node's [`Meter`]. The counts are the same on
//!   every store, so tests assert them.
//! - **Executors import plans, never the reverse**, and never write. Whether a filter is still needed, or a sort, was decided
//!   by the planner.
//!
//! # Why it is built this way
//!
//! *Moving and reading are two calls* because a lending `next()` cannot be written in safe Rust for a loop that skips rows,
//! and every filter is one.
//!
//! *Rows are trait objects*: a new operator is one file, and one line where its tier is opened. A move then costs a virtual call per
//! node. The most common pair, a filter over a scan of records, is one type, whose loop is compiled down to the store's cursor.
//! The type of the store ends at the leaves.
//!
//! *What nodes share* (interrupt, memory, catalog, recorder) is in [`Resources`]. The nodes that hold rows are counted before
//! execution, and each gets an equal part of the memory.
//!
//! *Ids come in batches*, because loading many records costs a store little more than loading one, above all over a network. Batches
//! begin small and double, so that a caller who needs three rows causes few reads. Over a network some batches are loaded while the
//! caller reads the one before. Above the leaves, rows are lent one at a time, because a batch of rows would be a copy.
//!
//! # Where to begin reading
//!
//! [`open()`] turns a plan into rows. [`gather()`] reads them to their end for a transaction, whose caller may write while
//! iterating. [`analyze()`] measures each node for explain. [`visit_targets`] finds the records that a write changes.
//! [`express`] answers the simplest queries without a plan.

mod analyze;
mod covered;
mod distinct;
mod distinct_keys;
mod entry_test;
pub(crate) mod express;
mod fetch;
mod gather;
mod ids;
mod keys;
mod measured;
mod merge;
mod meter;
mod open;
mod packed;
mod pipeline;
mod resources;
mod rows;
mod sort;
mod targets;

pub(crate) use analyze::analyze;
pub(crate) use gather::gather;
use meter::Meter;
pub(crate) use open::open;
pub(crate) use packed::Packed;
pub(crate) use resources::Resources;
pub(crate) use rows::{BoxedRows, NoRows, Rows};
pub(crate) use targets::{Target, visit_targets};
