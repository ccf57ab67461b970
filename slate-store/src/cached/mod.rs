//! A point cache over any store: values that single keys were read with, for whoever reads them again.
//!
//! ```text
//! Cached<S> ─snapshot()→ CachedSnapshot ─point_reader()→ CachedPointReader: looks in the cache, then in the store
//!     └───begin()──────→ CachedTransaction: records the keys it writes, and stamps them when it commits
//! ```
//!
//! A lookup in a tree on disk, or in a large write buffer, takes several times as long as one in the cache. Cursors and
//! transactions read from the store itself.
//!
//! # Why a cached value is never stale
//!
//! A view with version `v` shows exactly the commits up to `v`. The cache holds, per cached value, the version of the view
//! that read it, and, per hash of a key, a *last-write stamp*: the version of the last commit that wrote a key of that hash,
//! and how many such commits are under way.
//!
//! 1. A commit marks the stamps of its keys as pending before it can become visible, and replaces that by its version once
//!    it is visible. A commit whose outcome is unknown stays pending.
//! 2. A value read at version `r` is returned to a view of version `v` only if the key's stamp is not pending and is at most
//!    `min(r, v)`. The stamp is read after the value.
//!
//! Any commit between `r` and `v` was visible when the later of the two views was opened, so by 1 its stamp was set before
//! the check, and by 2 the value is not returned. Keys that share a stamp cost a needless miss, never a stale value.
//!
//! Only the process that writes can stamp: over a store that other processes write to
//! ([`Capabilities::exclusive`](crate::Capabilities::exclusive) is false) nothing is cached.

mod cache;
mod reader;
mod snapshot;
mod stamps;
mod store;
mod transaction;
mod value;

pub use reader::CachedPointReader;
pub use snapshot::CachedSnapshot;
pub use store::Cached;
pub use transaction::CachedTransaction;
