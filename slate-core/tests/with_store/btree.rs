//! A complete backend: ordered maps behind a lock. docs/writing-a-backend.md walks through it.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex, PoisonError};

use slate_store::{
    Bounds, Capabilities, Change, Changes, Cursor, Durability, Edge, Keyspace, Landing, LocalStore, Optimistic,
    OwnedBounds, PointReader, Result, Version, View,
};

pub(crate) type BTreeStore = Optimistic<LocalBTree>;
type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// One commit. A clone shares the maps.
#[derive(Clone, Default)]
pub(crate) struct BTreeView {
    keyspaces: BTreeMap<Keyspace, Arc<Map>>,
    version: Version,
}

#[derive(Default)]
pub(crate) struct LocalBTree(Mutex<BTreeView>);
impl LocalStore for LocalBTree {
    type Snapshot = BTreeView;
    fn capabilities(&self) -> Capabilities {
        Capabilities { name: "btree", exclusive: true, ..Capabilities::MINIMAL }
    }

    fn snapshot(&self) -> Result<BTreeView> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn apply(&self, changes: &mut Changes<'_>, _: Durability) -> Result<Version> {
        let mut next = self.snapshot()?;
        next.version.0 += 1;
        changes.each(next.version, |keyspace, change| {
            let map = Arc::make_mut(next.keyspaces.entry(keyspace).or_default());
            match change {
                Change::Writes(writes) => writes.iter().for_each(|(key, value)| match value {
                    Some(value) => drop(map.insert(key.to_vec(), value.to_vec())),
                    None => drop(map.remove(*key)),
                }),
                Change::DeleteRange(bounds) => map.retain(|key, _| !bounds.contains(key)),
            }
            Ok(())
        })?;
        next.keyspaces.retain(|_, map| !map.is_empty());
        let version = next.version;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(version)
    }
}

impl View for BTreeView {
    type Cursor = BTreeCursor;
    type PointReader = BTreePointReader;
    fn version(&self) -> Version {
        self.version
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<BTreeCursor> {
        let map = self.keyspaces.get(&keyspace).filter(|_| !bounds.is_empty()).cloned().unwrap_or_default();
        Ok(BTreeCursor { map, bounds: OwnedBounds::of(bounds), key: None })
    }

    fn point_reader(&self) -> Result<BTreePointReader> {
        Ok(BTreePointReader(self.clone(), Vec::new()))
    }
}

pub(crate) struct BTreeCursor {
    map: Arc<Map>,
    bounds: OwnedBounds,
    key: Option<Vec<u8>>,
}

impl BTreeCursor {
    fn land(&mut self, landing: Landing<'_>) -> Result<bool> {
        let entry = match landing {
            Landing::Up(from) => self.map.range::<[u8], _>((from, Unbounded)).next(),
            Landing::Down(to) => self.map.range::<[u8], _>((Unbounded, to)).next_back(),
        };
        self.key = entry.map(|(key, _)| key.clone()).filter(|key| self.bounds.bounds().contains(key));
        Ok(self.key.is_some())
    }
}

impl Cursor for BTreeCursor {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        let bounds = self.bounds.clone();
        self.land(bounds.bounds().confine(edge))
    }

    fn step_forward(&mut self) -> Result<bool> {
        self.key.take().map_or(Ok(false), |key| self.land(Landing::Up(Excluded(&key))))
    }

    fn step_back(&mut self) -> Result<bool> {
        self.key.take().map_or(Ok(false), |key| self.land(Landing::Down(Excluded(&key))))
    }

    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.map.get_key_value(self.key.as_ref()?).map(|(key, value)| (&key[..], &value[..]))
    }
}

pub(crate) struct BTreePointReader(BTreeView, Vec<Option<Vec<u8>>>);

impl PointReader for BTreePointReader {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        let Self(view, values) = self;
        *values = keys.iter().map(|(keyspace, key)| view.keyspaces.get(keyspace)?.get(*key).cloned()).collect();
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.1.get(index)?.as_deref()
    }
}
