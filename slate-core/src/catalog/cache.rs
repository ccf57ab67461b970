use std::sync::{Arc, Mutex, PoisonError};

use slate_store::View;

use super::Catalog;
use crate::Result;

/// The catalog last parsed. Commits that change the catalog conflict on its version, so a committed version number
/// names one content.
#[derive(Debug, Default)]
pub(crate) struct CatalogCache(Mutex<Arc<Catalog>>);

impl CatalogCache {
    /// The catalog as `view` sees it. Cost: one key where it is the one last seen, else a scan of the catalog.
    ///
    /// `view` must be a commit, or a transaction that has not changed the catalog.
    pub(crate) fn load(&self, view: &impl View) -> Result<Arc<Catalog>> {
        let version = Catalog::read_version(view)?;
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.version == version && version > 0 {
            return Ok(Arc::clone(&cached));
        }
        let catalog = Arc::new(Catalog::read(view, version)?);
        // An old snapshot must not push the current catalog out.
        if catalog.version > cached.version {
            *cached = Arc::clone(&catalog);
        }
        Ok(catalog)
    }
}
