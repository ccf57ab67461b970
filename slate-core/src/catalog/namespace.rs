use std::sync::Arc;

use super::{Catalog, CollectionInfo, ViewInfo, not_on_view};
use crate::Result;

/// The collection or view that a name refers to.
#[derive(Clone, Debug)]
pub(crate) enum Namespace {
    Collection(Arc<CollectionInfo>),
    View(Arc<ViewInfo>),
}

impl Namespace {
    /// Returns the collection.
    ///
    /// # Errors
    /// `CommandNotSupportedOnView` (166) for a view.
    pub(crate) fn into_collection(self) -> Result<Arc<CollectionInfo>> {
        match self {
            Self::Collection(collection) => Ok(collection),
            Self::View(view) => Err(not_on_view(&view.name)),
        }
    }
}

impl Catalog {
    /// Returns the collection or view with this name.
    pub(crate) fn namespace(&self, name: &str) -> Option<Namespace> {
        match self.view(name) {
            Some(view) => Some(Namespace::View(Arc::clone(view))),
            None => self.collection(name).cloned().map(Namespace::Collection),
        }
    }
}
