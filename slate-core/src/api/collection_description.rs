use bson::RawDocumentBuf;
use slate_query::collation::Collation;

use crate::{IndexDescription, Validator, catalog::CollectionInfo};

/// The description of an existing collection; see [`Database::list_collections`](crate::Database::list_collections).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CollectionDescription {
    /// Its name.
    pub name: String,
    /// How strings are compared, with all options; `None`: by their bytes.
    pub collation: Option<RawDocumentBuf>,
    /// The condition that its documents must fulfil.
    pub validator: Option<Validator>,
    /// Its indexes in the order of their creation, without the one on `_id`. Indexes that are being built come last.
    pub indexes: Vec<IndexDescription>,
}

impl CollectionDescription {
    pub(crate) fn of(collection: &CollectionInfo) -> Self {
        Self {
            name: collection.name.to_string(),
            collation: collection.collation.as_ref().map(Collation::to_document),
            validator: collection.validator.as_deref().map(|validator| {
                Validator::new(validator.document.clone()).level(validator.level).action(validator.action)
            }),
            indexes: IndexDescription::all(collection),
        }
    }
}
