//! A store on a cluster of TiKV nodes, which any number of processes share.
//!
//! ```text
//! TikvStore ── Cluster (cluster.rs)            the client, on threads of its own (runtime.rs)
//!   ├─ snapshot() ─ TikvSnapshot               a timestamp of the placement driver
//!   │                 ├─ TikvCursor            pages of a range (read.rs), the next one ahead
//!   │                 └─ TikvPointReader       many keys in one round trip
//!   ├─ latest()                                the last commit of single keys in one round trip (latest.rs, regions.rs, nodes.rs)
//!   └─ begin() ──── TikvTransaction            a snapshot, and writes and guards in memory
//!                     └─ commit (commit.rs)    mutations of an optimistic transaction of the client (committer.rs)
//! ```
//!
//! A version is a timestamp, so versions of all processes are in one order. The cluster has snapshot isolation: of two transactions that
//! write a key the first to commit wins. Guards make it serializable, and `commit.rs` says how. `layout.rs` draws the keys, `value.rs` how
//! values larger than a mebibyte are stored.
//!
//! # What differs from the stores of one machine
//!
//! [`Capabilities`](crate::Capabilities) say so:
//!
//! - Two shared guards of one key may conflict, except in keyspace 0, where they do not within one process.
//! - Deleting a range deletes the keys that the transaction's view shows, and conflicts with others only over these keys. The same is true of
//!   dropping a keyspace, which also conflicts with transactions of this process that wrote to it.
//! - A commit learns its version when it is made, so its last stage receives the version of the view, and has the limits of the transaction.
//! - A transaction writes at most 64 MiB and about 32,000 keys. A key has at most 4 KiB.
//! - The error [`Expired`](crate::Error::Expired): see [`Store::collect_garbage`](crate::Store::collect_garbage).
//!
//! The chunks of a replaced or deleted value of more than a mebibyte stay stored if the transaction had not read the value, as do those of a
//! process that ends within a commit. They are deleted with their keyspace.

mod address;
mod chunks;
mod cluster;
mod commit;
mod committer;
mod cursor;
mod drop;
mod error;
mod latest;
mod layout;
mod nodes;
mod options;
mod point_reader;
mod proto;
mod read;
mod regions;
mod runtime;
mod safepoint;
mod snapshot;
mod store;
mod stripes;
#[cfg(test)]
mod tests;
mod transaction;
mod value;

pub use address::Address;
pub use cursor::TikvCursor;
pub use options::Options;
pub use point_reader::TikvPointReader;
pub use snapshot::TikvSnapshot;
pub use store::TikvStore;
pub use transaction::TikvTransaction;

/// The longest key, in bytes: enough for every entry that the engine makes. With what this backend and TiKV's encoding add a key stays
/// below 5 KiB; TiKV refuses keys of more than 8 KiB by default.
const MAX_KEY: usize = 4 << 10;

/// Returns the smallest stored key above this one.
fn after(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}

/// A number that differs between processes.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};

    RandomState::new().build_hasher().finish()
}
