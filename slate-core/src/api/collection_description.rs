use crate::{IndexDescription, catalog::CollectionInfo};

/// The description of an existing collection; see [`Database::list_collections`](crate::Database::list_collections).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CollectionDescription {
    /// Its name.
    pub name: String,
    /// Its indexes in the order of their creation, without the one on `_id`. Indexes that are being built come last.
    pub indexes: Vec<IndexDescription>,
}

impl CollectionDescription {
    pub(crate) fn of(collection: &CollectionInfo) -> Self {
        Self { name: collection.name.to_string(), indexes: IndexDescription::all(collection) }
    }
}
