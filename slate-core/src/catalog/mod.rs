//! The catalog: the definitions and statistics of collections and indexes.
//!
//! The catalog is stored in keyspace 0 (see `docs/format.md`), so it is committed together with the data, and a
//! snapshot sees the catalog of its own commit. The last parsed catalog is cached ([`CatalogCache`]).

mod build_position;
mod cache;
mod change_log;
mod collection;
mod contents;
mod definition_change;
mod index;
mod index_description;
mod keys;
mod lease;
mod namespace;
mod pending_drop;
mod statistics;
mod validator;
mod version;
mod view;
mod wildcard;

pub(crate) use build_position::BuildPosition;
pub(crate) use cache::{CatalogCache, CatalogCheck};
pub(crate) use change_log::{ChangeLogInfo, set_trimmed_changes, trimmed_changes};
pub(crate) use collection::CollectionInfo;
pub(crate) use contents::{Catalog, Change};
pub(crate) use definition_change::{announce, definition_key, withdraw};
pub(crate) use index::{Held, IndexInfo, Partial, is_key_of_id};
pub use index_description::{IndexDescription, IndexState};
pub(crate) use keys::collection_of as collection_of_key;
pub(crate) use lease::{LeaseAttempt, LeasedWork};
pub(crate) use namespace::Namespace;
pub(crate) use pending_drop::{add_pending_drop, pending_drops, remove_pending_drop};
use slate_store::Keyspace;
pub(crate) use statistics::{CollectionStatistics, KeyStatistics};
pub(crate) use validator::Validator;
pub(crate) use version::{CatalogVersion, DEFINITIONS_VERSION};
pub(crate) use view::{ResolvedView, ViewInfo, not_on_view};
pub(crate) use wildcard::{ArrayPaths, Wildcard};

use crate::Error;

/// The keyspace of the catalog itself.
pub(crate) const CATALOG: Keyspace = Keyspace(0);

fn damaged(what: &str) -> Error {
    Error::corrupt(format!("the catalog is damaged: {what}"))
}
