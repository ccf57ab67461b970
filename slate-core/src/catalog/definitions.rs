use std::sync::Arc;

use slate_query::collation::Collation;

use super::{Catalog, ResolvedView};
use crate::Result;

/// The definitions that a request depends on to be parsed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Definitions {
    /// How strings are compared in the collection or view that is read or written. `None`: by their bytes.
    pub(crate) collation: Option<Collation>,
    /// The view that the request reads, if it reads a view.
    pub(crate) view: Option<Arc<ResolvedView>>,
    /// The views that stages read.
    pub(crate) others: Vec<Arc<ResolvedView>>,
}

impl Catalog {
    /// Returns the definitions for a request that reads the collection or view `name`, and `others` in its stages.
    ///
    /// # Errors
    /// Fails as [`resolved_view`](Self::resolved_view) does.
    pub(crate) fn definitions<'n>(&self, name: &str, others: impl Iterator<Item = &'n str>) -> Result<Definitions> {
        let view = self.resolved_view(name)?.map(Arc::new);
        let read_by_view = view.iter().flat_map(|view| view.reads()).map(Box::from);
        let others = self.resolved_views(others.map(Box::from).chain(read_by_view))?;
        let collation = match &view {
            Some(view) => view.collation.clone(),
            None => self.collection(name).and_then(|collection| collection.collation.clone()),
        };
        Ok(Definitions { collation, view, others })
    }
}
