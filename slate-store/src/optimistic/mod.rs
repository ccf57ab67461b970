//! Transactions over a [`LocalStore`](crate::LocalStore): one optimistic layer for all stores of this machine.
//!
//! ```text
//! Optimistic ── begin() ──→ OptimisticTransaction      a snapshot, and
//!     │                       ├─ WriteSet               its writes in memory     (write_set.rs, written.rs)
//!     │                       ├─ TransactionView        both as one state        (view.rs, overlay.rs, points.rs)
//!     │                       └─ guards
//!     │                              │ commit
//!     ├─ commit lock (queue.rs) ─────┤ one commit at a time
//!     ├─ CommitLog (commit_log.rs) ──┤ conflict with a commit since the snapshot?
//!     ├─ LocalStore::apply ──────────┤ all changes at once, as the next version
//!     └─ GroupCommit (queue.rs) ─────┘ one sync of the device for many commits
//! ```
//!
//! Nothing waits for an open transaction: neither readers, nor other transactions, nor their commits. Of two conflicting transactions the first to
//! commit wins, and the commit of the other fails with `Conflict`.
//!
//! # What a commit does
//!
//! 1. It releases its snapshot and takes the commit lock.
//! 2. It fails if a commit after its snapshot wrote a key that it wrote or guarded, or if guards conflict; see [`Guard`](crate::Guard).
//!    The log has the accesses of every commit that is after the snapshot of some open transaction.
//! 3. The store applies the writes and chooses the version. The commit is visible from here on.
//! 4. If transactions are open, the log records its accesses: those transactions may have begun before it became visible.
//! 5. It releases the lock, and a `Sync` commit makes sure that it is on the device.
//!
//! A transaction takes no lock while it is open, belongs to no thread, and may be moved.
//!
//! # Large transactions
//!
//! The writes of an open transaction are in memory and limited, because the transaction reads them. The writes of the *last stage* of a commit are
//! neither: they are made while the store applies the commit, and nothing reads them before. The last stage knows the version of the commit, so its
//! writes may contain it. They are checked for conflicts on their way to the store, which undoes the whole commit if one is found.

mod changes;
mod commit_log;
mod overlay;
mod points;
mod queue;
mod store;
mod transaction;
mod view;
mod write_set;
mod written;

pub use changes::Changes;
pub use overlay::OptimisticCursor;
pub use points::OptimisticPointReader;
pub use store::Optimistic;
pub use transaction::OptimisticTransaction;
pub use view::OptimisticView;
#[cfg(any(feature = "tikv", all(test, feature = "redb")))]
pub(crate) use write_set::WriteSet;
