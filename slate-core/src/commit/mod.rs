//! The order of commits, as far as the engine relies on it.
//!
//! A store gives every commit a [`Version`](slate_store::Version): a view of version `v` shows exactly the commits up to
//! `v`. Two things are built on that, for a database that this process owns alone
//! ([`Capabilities::exclusive`](slate_store::Capabilities)):
//!
//! - [`ChangeStamp`]: whether something that was read from one view is still the same in another. A commit marks the stamp
//!   as pending before it can become visible and replaces that by its version. What was read at version `r` is valid for a
//!   view of version `v` if the stamp is not pending and at most `min(r, v)`. The parsed catalog is cached by this rule, as
//!   are values in `slate_store::Cached`.
//! - [`OptimisticValidator`]: whether a collection that a transaction has read as a whole was written since. It keeps, per
//!   collection, the version of the last commit that wrote to it.
//!
//! Over a database that other processes write to, neither is used: the catalog's version is read with every view, and a
//! transaction that read a collection as a whole guards the collection's definition exclusively, which every writer of the
//! collection guards shared.
//!
//! A keyspace that a commit unlinks is dropped after that commit. Until then it is listed in the catalog as a pending drop:
//! after a crash in between, the next open drops it.

mod stamp;
mod validator;

pub(crate) use stamp::ChangeStamp;
pub(crate) use validator::{OptimisticValidator, Validation};
