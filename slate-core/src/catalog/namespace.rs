use std::sync::Arc;

use super::{CollectionInfo, ViewInfo, not_on_view};
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
