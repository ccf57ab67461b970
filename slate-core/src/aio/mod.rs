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
//! # Which thread executes a call
//!
//! A database reads files and waits for devices and locks, which a task must not do on a thread of the runtime. So a
//! thread that may wait executes a call, unless the call is short and need not wait:
//!
//! - **A short read of what is in memory** (any read of a database in memory, a document by `_id` that the point cache
//!   of a database on disk holds) is executed by the task that awaits it. As soon as a node of its plan has processed
//!   128 rows, another thread repeats it. So a thread of the runtime is busy for the time of a few hundred rows at
//!   most, and never waits for a device or a commit.
//! - **A short write to a database in memory** (an insertion of one document of at most 64 KiB, an update, a deletion)
//!   is also executed by that task, if no other write is queued. Another thread repeats it after 128 rows, if another
//!   commit is in progress or conflicts with it, and if it changes the catalog.
//! - **Other calls** are executed by tokio's pool for blocking work. Writes wait in a queue, in order, and take at most 32 of the pool's threads.
//!   Waiting writers therefore do not block reads if the pool has more threads than that (512 by default: `max_blocking_threads`).
//! - **A call that waits for a thread** ends when its token is cancelled, and is then not begun. Its deadline, which includes the wait, is checked
//!   when a thread begins it, and from then on by the call itself.
//! - **[Streams](Documents)** occupy no thread between batches. The awaiting task itself reads a scan in memory without
//!   a filter, one record at a time; it yields to other tasks after 256 records.
//! - **[`Database::transact`]** executes its closure on one thread of the pool. A transaction of **[`Database::begin`]** or
//!   **[`Database::transact_async`]** takes no thread between its calls, and moves between tasks like any value.
//!
//! Dropping the last handle closes the database on the thread that drops it, which may block. [`Database::close`]
//! does it on the pool and returns the outcome.
//!
//! Calls must be awaited within a tokio runtime, and fail outside of one. The runtime's I/O and clock are not needed.
//!
//! # When a future is dropped
//!
//! A write is applied as a whole or not at all, whenever its future is dropped; see [`Operation`].

mod call;
mod change_stream;
mod collection;
mod commands;
mod database;
mod documents;
mod in_place;
mod job;
mod methods;
mod operation;
mod poller;
mod runner;
mod signal;
mod transact_async;
mod transaction;
mod transaction_calls;
mod wait_limits;

pub use call::{Builder, Call};
pub use change_stream::{ChangeStream, LiveQuery};
pub use collection::{Collection, ReadCollection};
pub use commands::{Changed, Commands, RunningCommand};
pub use database::{Database, Snapshot};
pub use documents::{Cursor, Documents};
pub use operation::Operation;
pub use transact_async::AsyncTransaction;
pub use transaction::Transaction;
pub use wait_limits::Sleep;
