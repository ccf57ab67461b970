//! The `Store` contract: ordered bytes, snapshots, transactions; and the backends that keep it.
//!
//! ```text
//! Store ─snapshot()→ Snapshot ─────────────┐
//!   └───begin()────→ Transaction ─view()→ View ─cursor(keyspace)→ Cursor: seek, step, lend an entry
//!                        └─ put, delete, commit   └─points(keyspace)→ Points: get, load, lend values
//! ```
//!
//! It sees no documents, no indexes and no queries: those are bytes here.

mod bounds;
mod capabilities;
#[cfg(feature = "conformance")]
pub mod conformance;
mod durability;
mod error;
mod estimate;
mod files;
mod isolation;
mod keyspace;
mod limits;
mod size;
mod store;
mod transaction;
mod view;

pub mod memory;
#[cfg(feature = "redb")]
pub mod redb;

pub use bounds::{Bounds, Edge};
pub use capabilities::Capabilities;
pub use durability::Durability;
pub use error::{Context, Error, Result, Source, TooLarge};
pub use estimate::Estimate;
pub use isolation::Isolation;
pub use keyspace::Keyspace;
pub use limits::{MAX_KEY, MAX_VALUE};
pub use size::Size;
pub use store::Store;
pub use transaction::Transaction;
pub use view::{Cursor, Points, Snapshot, View};
