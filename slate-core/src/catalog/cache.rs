use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use slate_query::work;
use slate_store::{Ahead, Version, View};

use super::{Catalog, CatalogVersion};
use crate::{
    Error, Result,
    commit::{Announced, ChangeStamp},
    metrics::UseTable,
};

/// The last parsed catalog. If only this process changes the catalog, it is valid for a view if no commit changed the
/// catalog between the catalog's commit and the view's, as [`commit`](crate::commit) explains, and after a change only the
/// changed collections are parsed again. Otherwise it is valid for views with the same stored version, and a change makes
/// the whole catalog be parsed again.
#[derive(Debug)]
pub(crate) struct CatalogCache {
    last: RwLock<Option<Cached>>,
    changes: ChangeStamp,
    /// How often the catalog, or its changed part, was read from the store again.
    reads: AtomicU64,
    uses: UseTable,
    /// Whether a read since [`take_redefined`](Self::take_redefined) found changed definitions. Never set if `is_exclusive`.
    is_redefined: AtomicBool,
    /// Whether only this process changes the catalog. If not, each view of another commit reads the catalog's stored version,
    /// and the whole catalog if that has changed.
    is_exclusive: bool,
}

#[derive(Clone, Debug)]
struct Cached {
    catalog: Arc<Catalog>,
    /// The version of the view that the catalog was read from.
    read_at: Version,
    /// The catalog's stored version in that view. `None` if only this process changes the catalog, and after
    /// [`outdate`](CatalogCache::outdate).
    stored: Option<CatalogVersion>,
}

/// A read of the catalog's version in a view, which was sent and is not awaited yet. No result may leave the call before
/// [`confirm`](CatalogCache::confirm) has found that the catalog in use has this version.
#[derive(Debug)]
pub(crate) struct CatalogCheck {
    stored: CatalogVersion,
    ahead: Ahead,
}

impl CatalogCache {
    pub(crate) fn new(is_exclusive: bool) -> Self {
        Self {
            last: RwLock::default(),
            changes: ChangeStamp::default(),
            reads: AtomicU64::default(),
            uses: UseTable::default(),
            is_redefined: AtomicBool::default(),
            is_exclusive,
        }
    }

    /// Returns how often the catalog was read from the store again, in part or whole, because the cached one was outdated.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Returns whether a read since the last call found changed definitions. Always false if only this process changes the catalog.
    pub(crate) fn take_redefined(&self) -> bool {
        !self.is_exclusive && self.is_redefined.swap(false, Ordering::Relaxed)
    }

    /// Runs a commit that changes the collections and views with these names, or their statistics.
    ///
    /// # Errors
    /// Any error of `commit`.
    pub(crate) fn change<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        commit: impl FnOnce() -> Result<Version>,
    ) -> Result<Version> {
        let change = self.changes.begin(names.map(Box::from).collect());
        let committed = commit();
        match &committed {
            Ok(version) => change.committed(*version),
            Err(error) if error.leaves_nothing() => {}
            Err(_) => change.unknown(),
        }
        if !self.is_exclusive && !committed.as_ref().is_err_and(Error::leaves_nothing) {
            self.outdate(None);
        }
        committed
    }

    /// Returns the catalog as `view` sees it. Reads nothing if the cached one is valid; otherwise reads what has
    /// changed, or the whole catalog.
    ///
    /// `view` must be a snapshot, or a transaction that has not changed the catalog.
    pub(crate) fn load(&self, view: &impl View) -> Result<Arc<Catalog>> {
        let version = view.version();
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner);
        let is_unchanged = |cached: &Cached| {
            self.is_exclusive && self.changes.is_unchanged_since(version.min(cached.read_at))
                || cached.read_at == version
        };
        match &*last {
            Some(cached) if is_unchanged(cached) => Ok(Arc::clone(&cached.catalog)),
            _ => {
                drop(last);
                self.read(view)
            }
        }
    }

    /// Returns the last catalog that was read, and the check whether it is that of `view`, which [`confirm`](Self::confirm) waits for.
    /// Returns the catalog of `view` without a check if only this process changes it, if no catalog is cached or the cached one is
    /// outdated, or if the store cannot send the check ahead.
    ///
    /// `view` is as for [`load`](Self::load).
    pub(crate) fn load_ahead(&self, view: &impl View) -> Result<(Arc<Catalog>, Option<CatalogCheck>)> {
        if self.is_exclusive {
            return Ok((self.load(view)?, None));
        }
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(Cached { catalog, stored: Some(stored), .. }) = last
            && let Some(ahead) = CatalogVersion::read_ahead(view)?
        {
            return Ok((catalog, Some(CatalogCheck { stored, ahead })));
        }
        Ok((self.load(view)?, None))
    }

    /// Returns the last catalog that was read, and its version. Other processes may have changed it since. `None` if no catalog is
    /// cached, if the cached one is outdated, or if only this process changes the catalog.
    pub(crate) fn last_read(&self) -> Option<(Arc<Catalog>, CatalogVersion)> {
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner);
        let Cached { catalog, stored, .. } = last.as_ref()?;
        Some((Arc::clone(catalog), (*stored)?))
    }

    /// Waits for the check. Returns the changes of definitions that are announced in the view; `None` if the view does not have the catalog
    /// that it was read with, so that its call must be repeated.
    pub(crate) fn confirm(&self, check: CatalogCheck) -> Result<Option<Vec<Announced>>> {
        let (found, announced) = CatalogVersion::wait(check.ahead)?;
        if found > check.stored {
            self.outdate(Some(found));
        }
        Ok((found == check.stored).then_some(announced))
    }

    /// Makes the next view of another commit read the whole catalog, unless the cached one has `version` or a later
    /// one; with `None` in any case.
    fn outdate(&self, version: Option<CatalogVersion>) {
        let mut last = self.last.write().unwrap_or_else(PoisonError::into_inner);
        let is_older = |last: &&mut Cached| version.is_none_or(|version| last.stored < Some(version));
        if let Some(last) = last.as_mut().filter(is_older) {
            last.stored = None;
        }
    }

    /// Calls `visitor` with the catalog of the latest commit if it is cached and no commit is changing it; `None` otherwise, and if
    /// other processes may change it. Also returns the version for [`is_unchanged_since`](Self::is_unchanged_since).
    pub(crate) fn try_with<R>(&self, visitor: impl FnOnce(&Catalog) -> R) -> Option<(R, Version)> {
        if !self.is_exclusive {
            return None;
        }
        let last = self.last.read().unwrap_or_else(PoisonError::into_inner);
        let cached = last.as_ref().filter(|cached| self.changes.is_unchanged_since(cached.read_at))?;
        Some((visitor(&cached.catalog), cached.read_at))
    }

    /// Returns whether no commit has changed the catalog that [`try_with`](Self::try_with) lent, and none is changing it.
    pub(crate) fn is_unchanged_since(&self, version: Version) -> bool {
        self.changes.is_unchanged_since(version)
    }

    #[cold]
    fn read(&self, view: &impl View) -> Result<Arc<Catalog>> {
        let read_at = view.version();
        let cached = self.last.read().unwrap_or_else(PoisonError::into_inner).clone();
        let stored = if self.is_exclusive { None } else { Some(CatalogVersion::read(view)?) };
        let catalog = match cached {
            Some(cached) if self.is_exclusive => match self.changes.changed_since(read_at.min(cached.read_at)) {
                Some(names) if names.is_empty() => cached.catalog,
                Some(names) => self.read_again(|| cached.catalog.reread(view, &names, &self.uses))?,
                None => self.read_again(|| Catalog::read(view, &self.uses))?,
            },
            Some(cached) if cached.stored == stored => cached.catalog,
            Some(cached) => {
                let read = self.read_again(|| Catalog::read(view, &self.uses))?;
                if read.definitions != cached.catalog.definitions {
                    self.is_redefined.store(true, Ordering::Relaxed);
                }
                read
            }
            None => Arc::new(Catalog::read(view, &self.uses)?),
        };
        // If the call has ended, its last definitions may not be parsed completely.
        work::check()?;
        let mut last = self.last.write().unwrap_or_else(PoisonError::into_inner);
        // The catalog of an old snapshot does not replace a newer one.
        if last.as_ref().is_none_or(|last| last.read_at < read_at) {
            *last = Some(Cached { catalog: Arc::clone(&catalog), read_at, stored });
        }
        Ok(catalog)
    }

    /// Reads the catalog because the cached one is outdated, and counts this.
    fn read_again(&self, read: impl FnOnce() -> Result<Catalog>) -> Result<Arc<Catalog>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let catalog = read()?;
        self.uses.forget_unused();
        Ok(Arc::new(catalog))
    }
}

#[cfg(test)]
mod tests {
    use slate_store::{Durability, Keyspace, Store, Transaction, memory::MemoryStore};

    use super::*;
    use crate::catalog::{Change, CollectionInfo};

    /// Commits the collections of `catalog` and another one with that name.
    fn add(store: &MemoryStore, catalog: &Catalog, name: &str) -> Version {
        let mut changed = catalog.clone();
        changed.put(CollectionInfo::new(name, Keyspace(7)));
        let mut transaction = store.begin(std::time::Duration::ZERO).unwrap();
        changed.write(&mut transaction, std::iter::once((name, Change::Definition)), None).unwrap();
        transaction.commit(Durability::Deferred).unwrap()
    }

    fn names(catalog: &Catalog) -> Vec<&str> {
        catalog.collections().map(|collection| &*collection.name).collect()
    }

    #[test]
    fn a_view_gets_the_catalog_of_its_own_commit_while_others_change_it() {
        let (store, cache) = (MemoryStore::default(), CatalogCache::new(true));
        let first = store.snapshot().unwrap();
        let empty = cache.load(&first).unwrap();
        assert_eq!(names(&empty), [""; 0]);
        cache.change(["a"].into_iter(), || Ok(add(&store, &empty, "a"))).unwrap();
        let second = store.snapshot().unwrap();
        assert_eq!(names(&cache.load(&second).unwrap()), ["a"]);
        assert_eq!(names(&cache.load(&first).unwrap()), [""; 0], "an older view");
        let loaded = cache.load(&second).unwrap();
        cache
            .change(["b"].into_iter(), || {
                let version = add(&store, &loaded, "b");
                // The commit is visible, but its result has not been returned yet.
                assert_eq!(names(&cache.load(&store.snapshot().unwrap()).unwrap()), ["a", "b"]);
                assert_eq!(names(&cache.load(&second).unwrap()), ["a"]);
                Ok(version)
            })
            .unwrap();
        let third = store.snapshot().unwrap();
        let loaded = cache.load(&third).unwrap();
        assert_eq!(names(&loaded), ["a", "b"]);
        // A change by another process is visible only if the database is not owned exclusively.
        add(&store, &loaded, "c");
        let last = store.snapshot().unwrap();
        assert_eq!(names(&cache.load(&last).unwrap()), ["a", "b"]);
        assert_eq!(names(&CatalogCache::new(false).load(&last).unwrap()), ["a", "b", "c"]);
    }

    #[test]
    fn views_opened_beside_changes_get_the_catalogs_of_their_commits() {
        const CHANGES: usize = 200;
        let (store, cache) = (MemoryStore::default(), CatalogCache::new(true));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for number in 0..CHANGES {
                    let catalog = cache.load(&store.snapshot().unwrap()).unwrap();
                    let name = number.to_string();
                    cache.change([&*name].into_iter(), || Ok(add(&store, &catalog, &name))).unwrap();
                }
            });
            for _ in 0..3 {
                threads.spawn(|| {
                    let mut last = 0;
                    while last < CHANGES {
                        let view = store.snapshot().unwrap();
                        let loaded = cache.load(&view).unwrap();
                        let right = Catalog::read(&view, &UseTable::default()).unwrap();
                        assert_eq!(names(&loaded), names(&right));
                        last = loaded.collections().count();
                    }
                });
            }
        });
    }
}
