use std::{ops::Bound, sync::Arc};

use slate_query::Code;

use super::{Catalog, CollectionInfo, ViewInfo, not_on_view};
use crate::{Error, ErrorKind, Result, namespace};

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
    /// Looks up a view, then a collection, by name.
    pub(crate) fn namespace(&self, name: &str) -> Option<Namespace> {
        match self.view(name) {
            Some(view) => Some(Namespace::View(Arc::clone(view))),
            None => self.collection(name).cloned().map(Namespace::Collection),
        }
    }

    /// Checks that a collection or view that does not exist may be created under this name.
    ///
    /// # Errors
    /// Fails with `InvalidNamespace` (73), and with `DatabaseDifferCase` (13297) if it would be the first one of a database whose name
    /// differs from that of another database in the case of ASCII letters alone.
    pub(crate) fn check_new(&self, name: &str) -> Result<()> {
        namespace::check(name)?;
        let (database, own) = namespace::split(name);
        let is_of_database = |stored: &str| namespace::split(stored).0 == database;
        // The names of a database follow each other. Those of the default database stand before or behind all others.
        let beginning = name.strip_suffix(own).unwrap_or_default();
        let exists = |names: &mut dyn DoubleEndedIterator<Item = &str>| {
            names.next().is_some_and(is_of_database) || names.next_back().is_some_and(is_of_database)
        };
        let from = (Bound::Included(beginning), Bound::<&str>::Unbounded);
        if exists(&mut self.collections.range::<_, str>(from).map(|(stored, _)| &**stored))
            || exists(&mut self.views.range::<_, str>(from).map(|(stored, _)| &**stored))
        {
            return Ok(());
        }
        let databases = self.collections.keys().chain(self.views.keys()).map(|stored| namespace::split(stored).0);
        let other = databases.into_iter().find(|other| other.eq_ignore_ascii_case(database) && *other != database);
        let Some(other) = other else { return Ok(()) };
        let message =
            format!("db already exists with different case already have: [{other}] trying to create [{database}]");
        Err(Error::new(ErrorKind::Exists, Code::DATABASE_DIFFER_CASE, message))
    }
}
