use crate::{IndexDescription, catalog::CollectionInfo};

/// A collection that is there; see [`Database::collections`](crate::Database::collections).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CollectionDescription {
    /// Its name.
    pub name: String,
    /// Its indexes, in the order they were declared; the one on `_id` is always there and not listed. Those that are being
    /// built come last.
    pub indexes: Vec<IndexDescription>,
}

impl CollectionDescription {
    pub(crate) fn of(collection: &CollectionInfo) -> Self {
        Self { name: collection.name.to_string(), indexes: IndexDescription::all(collection) }
    }
}
