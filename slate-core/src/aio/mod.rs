//! The same database for async code, on tokio: feature `async`.
//!
//! ```
//! use bson::doc;
//! use serde::{Deserialize, Serialize};
//! use slate_core::{Index, aio::Database};
//!
//! #[derive(Serialize, Deserialize)]
//! struct User { name: String, age: i32 }
//!
//! # #[tokio::main]
//! # async fn main() -> slate_core::Result<()> {
//! let db = Database::open("memory:").await?;
//! let users = db.collection::<User>("users");
//! users.insert_one(&User { name: "Ada".into(), age: 36 }).await?;
//! users.create_index(Index::on(doc! { "age": 1 })).run().await?;
//!
//! let mut found = users.find(doc! { "age": { "$gte": 21 } }).sort(doc! { "age": 1 }).run().await?;
//! while let Some(user) = found.next().await {
//!     println!("{}", user?.name);
//! }
//!
//! db.transact(|tx| {                                       // the closure is blocking code, on a thread of its own
//!     let users = tx.collection::<User>("users");
//!     users.update_many(doc! { "age": { "$lt": 18 } }, doc! { "$set": { "minor": true } }).run()
//! })
//! .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What runs where
//!
//! A database reads files and waits for devices and locks, so each call here is carried out by a thread on which that
//! is allowed, and the caller's task waits meanwhile:
//!
//! - **Calls** run on tokio's pool for blocking work. At most 32 writes are there at once, however many are awaited; the
//!   others wait in line, first come, first served, and hold no thread. So a crowd of writers that wait for their turn
//!   does not keep the reads from running, as long as the pool has more threads than that (512, if not said otherwise:
//!   `max_blocking_threads`).
//! - **[Streams](Documents)** hold no thread between batches.
//! - **[`Database::transact`]** runs its closure on one thread of the pool.
//! - **[`Database::begin`]** starts a thread that owns the transaction until its end.
//!
//! A deadline or a token is looked at once a call's turn in line has come, and from then on by the call itself.
//!
//! Dropping the last handle closes the database on the thread that drops it, which may take a moment:
//! [`Database::close`] does it elsewhere, and tells what came of it.
//!
//! Each call must be polled within a tokio runtime; outside of one it fails and says so. Neither the runtime's I/O nor its
//! clock is needed.
//!
//! # When a future is dropped
//!
//! A write is done wholly or not at all, whenever its future is dropped; see [`Operation`].

mod call;
mod collection;
mod database;
mod documents;
mod operation;
mod runner;
mod thread;
mod transaction;

pub use call::{Builder, Call};
pub use collection::{Collection, ReadCollection};
pub use database::{Database, Snapshot};
pub use documents::{Cursor, Documents};
pub use operation::Operation;
pub use transaction::Transaction;
