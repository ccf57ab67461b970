//! The order of commits, as used by the engine.
//!
//! A store gives every commit a [`Version`](slate_store::Version): a view of version `v` shows exactly the commits up
//! to `v`. If this process owns the database alone ([`Capabilities::exclusive`](slate_store::Capabilities)), two
//! mechanisms use that:
//!
//! - [`ChangeStamp`] decides whether data read from one view is valid for another. A commit marks the stamp as pending
//!   before it can become visible, and then replaces that by its version. Data read at version `r` is valid for a view of
//!   version `v` if the stamp is not pending and is at most `min(r, v)`. The parsed catalog is cached by this rule, as
//!   are values in `slate_store::Cached`. The stamp also lists the collections that recent commits have changed, so an outdated
//!   catalog becomes that of another commit by reading these alone.
//! - [`OptimisticValidator`] decides whether a collection that a transaction has read as a whole was written since. It
//!   stores, per collection, the version of the last commit that wrote to it.
//!
//! If other processes write to the database, neither is used: the catalog's version is read with every commit, and a
//! transaction that read a collection as a whole guards the collection's definition exclusively, while every writer of
//! the collection guards it shared. A change of a definition that has conflicted announces itself, and writers make way
//! (`announcements.rs`).
//!
//! A keyspace that a commit unlinks is dropped after that commit. Until then it is listed in the catalog as a pending drop:
//! after a crash in between, the next open drops it.

mod announcements;
mod leases;
mod stamp;
mod turns;
mod validator;

pub(crate) use announcements::{Announced, Announcements, HOLD as ANNOUNCEMENT_HOLD, PAUSE as ANNOUNCEMENT_PAUSE};
pub(crate) use leases::{LeaseValue, Leases, RENEWED_EVERY as LEASE_RENEWED_EVERY, random_number};
pub(crate) use stamp::ChangeStamp;
pub(crate) use turns::{Turn, Turns};
pub(crate) use validator::{OptimisticValidator, Validation};
