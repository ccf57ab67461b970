//! A cache of values that were read by key, over any store.
//!
//! ```text
//! Cached<S> ─snapshot()→ CachedSnapshot ─point_reader()→ CachedPointReader: looks in the cache, then in the store
//!     └───begin()──────→ CachedTransaction: records the keys it writes, and stamps them when it commits
//! ```
//!
//! A cached lookup is several times faster than one in a tree on disk or in a large write buffer. Cursors and
//! transactions bypass the cache.
//!
//! # Why a cached value is never stale
//!
//! A view with version `v` shows exactly the commits up to `v`. The cache records, per cached value, the version of the
//! view that read it, and, per hash of a key, a *last-write stamp*: the version of the last commit that wrote a key
//! with that hash, and the number of such commits in progress.
//!
//! 1. A commit marks the stamps of its keys as pending before it can become visible, and sets them to its version once
//!    it is visible. A commit with an unknown outcome stays pending.
//! 2. A value read at version `r` is returned to a view of version `v` only if the key's stamp is not pending and is at most
//!    `min(r, v)`. The stamp is read after the value.
//!
//! Any commit between `r` and `v` was visible when the later of the two views was opened, so by 1 its stamp was set
//! before the check, and by 2 the value is not returned. Keys that share a stamp can cause an unnecessary miss, but no
//! stale value.
//!
//! Stamps cover only writes of this process. Nothing is cached over a store that other processes write to
//! ([`Capabilities::exclusive`](crate::Capabilities::exclusive) is false).

mod cache;
mod reader;
mod reads;
mod snapshot;
mod stamps;
mod store;
mod transaction;
mod value;

pub use reader::CachedPointReader;
pub use snapshot::CachedSnapshot;
pub use store::Cached;
pub use transaction::CachedTransaction;
