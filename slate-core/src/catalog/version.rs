use std::ops::ControlFlow;

use slate_store::{Ahead, Bounds, Keyspace, View};

use super::{CATALOG, damaged, keys};
use crate::{Result, commit::Announced};

/// The keyspace and the key of the counter of changes of definitions.
pub(crate) const DEFINITIONS_VERSION: (Keyspace, &[u8]) = (CATALOG, keys::VERSION);

/// The version of the catalog's content, by which a process notices changes that others make. Each part grows with every commit
/// that changes its part of the catalog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CatalogVersion {
    definitions: u64,
    /// The sum of the counters of all collections. Comparable only between equal definitions.
    properties: u64,
    statistics: u64,
}

impl CatalogVersion {
    pub(super) fn read(view: &impl View) -> Result<Self> {
        let mut version = Self::default();
        let invalid = view.scan(CATALOG, Self::bounds(), |key, value| version.add(key, value))?;
        if invalid.is_some() { Err(damaged("its version")) } else { Ok(version) }
    }

    /// Begins to read the version; `None` on a store where that gains nothing.
    pub(super) fn read_ahead(view: &impl View) -> Result<Option<Ahead>> {
        Ok(view.scan_ahead(CATALOG, Self::bounds())?)
    }

    /// Waits for the version, and the changes that are announced.
    pub(super) fn wait(ahead: Ahead) -> Result<(Self, Vec<Announced>)> {
        let (mut version, mut announced) = (Self::default(), Vec::new());
        for (key, value) in ahead.wait()? {
            if version.add(&key, &value).is_break() {
                return Err(damaged("its version"));
            }
            if let (Some(collection), Ok(id)) = (keys::announced(&key), (&*value).try_into()) {
                announced.push(Announced { collection: collection.into(), id: u64::from_be_bytes(id) });
            }
        }
        Ok((version, announced))
    }

    /// Returns whether no definition has changed since this version: whether `stored`, the value of [`DEFINITIONS_VERSION`], is still the same.
    pub(crate) fn has_definitions(self, stored: Option<&[u8]>) -> bool {
        match stored {
            None => self.definitions == 0,
            Some(stored) => stored.try_into().is_ok_and(|stored| u64::from_be_bytes(stored) == self.definitions),
        }
    }

    fn bounds() -> Bounds<'static> {
        let (start, end) = keys::versions();
        Bounds { start: Some(start), end: Some(end) }
    }

    /// Adds a stored counter. Breaks if it is damaged.
    fn add(&mut self, key: &[u8], value: &[u8]) -> ControlFlow<()> {
        let Ok(number) = value.try_into().map(u64::from_be_bytes) else { return ControlFlow::Break(()) };
        match key {
            keys::VERSION => self.definitions = number,
            keys::STATISTICS_VERSION => self.statistics = number,
            key if keys::announced(key).is_some() => {}
            _ => self.properties = self.properties.saturating_add(number),
        }
        ControlFlow::Continue(())
    }
}
