use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicU64, Ordering},
};

use slate_store::View;

use super::{Catalog, CatalogVersion};
use crate::Result;

/// The catalog last parsed. Commits that change the catalog conflict on its version, so a committed version
/// names one content.
///
/// Nobody else commits to a database that is open, so that the commits of this process tell whether it has changed: it is
/// not even asked for its version where none has since it was last loaded.
#[derive(Debug, Default)]
pub(crate) struct CatalogCache {
    last: RwLock<Cached>,
    /// How many commits that change the catalog have begun, and how many of them have come to an end.
    begun: AtomicU64,
    ended: AtomicU64,
}

#[derive(Debug, Default)]
struct Cached {
    catalog: Arc<Catalog>,
    /// It is what a view sees that was opened when so many changes were made and none was under way.
    changes: Option<u64>,
}

/// How many changes had been made before a view was opened; `None` where one was under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before(Option<u64>);

/// A commit that changes the catalog, for as long as it may be under way.
pub(crate) struct Change<'c>(&'c CatalogCache);

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl CatalogCache {
    /// To be held while a change of the catalog is committed.
    pub(crate) fn change(&self) -> Change<'_> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        Change(self)
    }

    /// To be called before a view is opened that the catalog is to be loaded from.
    pub(crate) fn before(&self) -> Before {
        // Those that ended first: where as many had begun afterwards, none was under way in between.
        let ended = self.ended.load(Ordering::SeqCst);
        Before(Some(self.begun.load(Ordering::SeqCst)).filter(|begun| *begun == ended))
    }

    /// The catalog as `view` sees it. Cost: nothing where it has not changed since it was last loaded, one key where it turns
    /// out to be the one last seen, else a scan of the catalog.
    ///
    /// `view` must be a commit, or a transaction that has not changed the catalog.
    pub(crate) fn load(&self, before: Before, view: &impl View) -> Result<Arc<Catalog>> {
        self.with(before, view, Arc::clone)
    }

    /// The same, for a look at it: for a single key, holding the catalog takes as long as finding the collection in it.
    pub(crate) fn with<R>(&self, before: Before, view: &impl View, look: impl FnOnce(&Arc<Catalog>) -> R) -> Result<R> {
        let changes = before.0.filter(|changes| *changes == self.begun.load(Ordering::SeqCst));
        if changes.is_some() {
            let cached = self.last.read().unwrap_or_else(PoisonError::into_inner);
            if cached.changes == changes {
                return Ok(look(&cached.catalog));
            }
        }
        Ok(look(&self.read(changes, view)?))
    }

    #[cold]
    fn read(&self, changes: Option<u64>, view: &impl View) -> Result<Arc<Catalog>> {
        let version = Catalog::read_version(view)?;
        let last = || self.last.write().unwrap_or_else(PoisonError::into_inner);
        {
            let mut cached = last();
            if cached.catalog.version == version && version > CatalogVersion::default() {
                cached.changes = cached.changes.max(changes);
                return Ok(Arc::clone(&cached.catalog));
            }
        }
        let catalog = Arc::new(Catalog::read(view, version)?);
        let mut cached = last();
        // An old snapshot must not push the current catalog out.
        if (catalog.version, changes) > (cached.catalog.version, cached.changes) {
            *cached = Cached { catalog: Arc::clone(&catalog), changes };
        }
        Ok(catalog)
    }
}

#[cfg(test)]
mod tests {
    use slate_store::{Durability, Keyspace, Store, Transaction, memory::MemoryStore};

    use super::*;
    use crate::catalog::CollectionInfo;

    /// Commits a collection of that name, beside those of `catalog`.
    fn add(store: &MemoryStore, catalog: &Catalog, name: &str) {
        let mut changed = catalog.clone();
        changed.put(CollectionInfo::new(name, Keyspace(7)));
        let mut transaction = store.begin(std::time::Duration::ZERO).unwrap();
        changed.write(&mut transaction, [name].into_iter()).unwrap();
        transaction.commit(Durability::Deferred).unwrap();
    }

    fn names(catalog: &Catalog) -> Vec<&str> {
        catalog.collections().map(|collection| &*collection.name).collect()
    }

    #[test]
    fn a_view_gets_the_catalog_of_its_own_commit_whatever_is_under_way() {
        let (store, cache) = (MemoryStore::default(), CatalogCache::default());
        let open = || (cache.before(), store.snapshot().unwrap());
        let load = |(before, view): &(Before, _)| cache.load(*before, view).unwrap();

        let first = open();
        let empty = load(&first);
        assert_eq!(names(&empty), [""; 0]);

        let before = cache.before();
        let change = cache.change();
        add(&store, &empty, "a");
        drop(change);
        let late = (before, store.snapshot().unwrap());
        assert_eq!(names(&load(&late)), ["a"], "changed after it was asked whether it had");
        assert_eq!(names(&load(&first)), [""; 0], "an old view");
        let second = open();
        let loaded = load(&second);

        let change = cache.change();
        add(&store, &loaded, "b");
        // Committed, and not known to be: the view alone tells.
        assert_eq!(names(&load(&open())), ["a", "b"]);
        assert_eq!(names(&load(&second)), ["a"]);
        drop(change);
        let loaded = load(&open());
        assert_eq!(names(&loaded), ["a", "b"]);

        // One that fails changes nothing.
        drop(cache.change());
        let loaded = load(&open());
        assert_eq!(names(&loaded), ["a", "b"]);

        // What was not announced is not looked for: nothing is read.
        add(&store, &loaded, "c");
        assert_eq!(names(&load(&open())), ["a", "b"]);
    }

    #[test]
    fn views_opened_beside_changes_get_the_catalogs_of_their_commits() {
        const CHANGES: usize = 200;
        let (store, cache) = (MemoryStore::default(), CatalogCache::default());
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for number in 0..CHANGES {
                    let before = cache.before();
                    let catalog = cache.load(before, &store.snapshot().unwrap()).unwrap();
                    let _change = cache.change();
                    add(&store, &catalog, &number.to_string());
                }
            });
            for _ in 0..3 {
                threads.spawn(|| {
                    let mut last = 0;
                    while last < CHANGES {
                        let before = cache.before();
                        let view = store.snapshot().unwrap();
                        let loaded = cache.load(before, &view).unwrap();
                        let right = Catalog::read(&view, Catalog::read_version(&view).unwrap()).unwrap();
                        assert_eq!(names(&loaded), names(&right));
                        last = loaded.collections().count();
                    }
                });
            }
        });
    }
}
