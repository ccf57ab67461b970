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
//! users.create_index(Index::on(doc! { "age": 1 })).await?;
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

mod bulk_write;
mod collection;
mod create_index;
mod database;
mod delete;
mod documents;
mod find;
mod find_one_and;
mod insert_many;
mod operation;
mod runner;
mod snapshot;
mod thread;
mod transaction;
mod update;
mod verify;

pub use bulk_write::BulkWrite;
pub use collection::{Collection, ReadCollection};
pub use create_index::CreateIndex;
pub use database::Database;
pub use delete::Delete;
pub use documents::Documents;
pub use find::Find;
pub use find_one_and::{FindOneAndDelete, FindOneAndUpdate};
pub use insert_many::InsertMany;
pub use operation::Operation;
pub use snapshot::Snapshot;
pub use transaction::Transaction;
pub use update::Update;
pub use verify::Verify;

/// Setters of a builder that hand their argument to the same setter of the blocking one.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            $(#[$doc])*
            pub fn $name(mut self, $($argument: $type),*) -> Self {
                self.call = self.call.$name($($argument),*);
                self
            }
        )*
    };
}
use setters;
