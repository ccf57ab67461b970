use bson::RawDocumentBuf;
use slate_query::collation::Collation;

use crate::{
    IndexDescription, Validator, View,
    catalog::{Catalog, CollectionInfo, ViewInfo},
    namespace::DatabaseName,
};

/// The description of an existing collection or view; see [`Database::list_collections`](crate::Database::list_collections).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CollectionDescription {
    /// The name of the collection or view.
    pub name: String,
    /// The collation by which strings are compared, with all options; `None`: by their bytes.
    pub collation: Option<RawDocumentBuf>,
    /// The validator of the documents, if the collection has one.
    pub validator: Option<Validator>,
    /// Whether the log of changes stores the documents before and after each change; see
    /// [`Collection::keep_images`](crate::Collection::keep_images).
    pub keeps_images: bool,
    /// The view's definition. `None` for a collection.
    pub view: Option<View>,
    /// The indexes in the order of their creation, without the one on `_id`. Indexes that are being built come last.
    pub indexes: Vec<IndexDescription>,
}

impl CollectionDescription {
    fn of(collection: &CollectionInfo, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            collation: collection.collation.as_ref().map(Collation::to_document),
            validator: collection.validator.as_deref().map(|validator| {
                Validator::new(validator.document.clone()).level(validator.level).action(validator.action)
            }),
            keeps_images: collection.keeps_images,
            view: None,
            indexes: IndexDescription::all(collection),
        }
    }

    fn of_view(view: &ViewInfo, name: &str) -> Self {
        let shown = if *name == *view.name { View::of(view) } else { View::shown(view) };
        Self {
            name: name.to_owned(),
            collation: view.collation.as_ref().map(Collation::to_document),
            validator: None,
            keeps_images: false,
            view: Some(shown),
            indexes: Vec::new(),
        }
    }

    /// Returns the collections and views of a database, sorted by name.
    pub(crate) fn all(catalog: &Catalog, database: &DatabaseName) -> Vec<Self> {
        let collections = catalog.collections();
        let collections = collections.filter_map(|info| database.own(&info.name).map(|name| Self::of(info, name)));
        let views = catalog.views().filter_map(|info| database.own(&info.name).map(|name| Self::of_view(info, name)));
        let mut all: Vec<Self> = collections.chain(views).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}
