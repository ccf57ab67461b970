//! Keyspaces as persistent ordered maps under one atomically swapped root. A snapshot is one pointer.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    collections::BTreeMap,
    ops::Bound,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use arc_swap::ArcSwap;
use im::{OrdMap, ordmap::RangedIter, shared_ptr::DefaultSharedPtr};
use self_cell::self_cell;

use crate::{
    Bounds, Capabilities, Context, Cursor, Durability, Edge, Error, Isolation, Keyspace, Points, Result, Size, Store,
    Transaction, View,
    bounds::{Heading, Landing, OwnedBounds},
};

pub type Value = Arc<[u8]>;
type Map = OrdMap<Key, Value>;
type Root = OrdMap<Keyspace, Map>;

/// A key in 24 bytes: up to 22 of its own in place, longer ones behind a counted pointer.
#[derive(Clone, Debug)]
pub enum Key {
    Inline(u8, [u8; 22]),
    Shared(Arc<[u8]>),
}

impl Key {
    pub fn new(bytes: &[u8]) -> Self {
        match u8::try_from(bytes.len()) {
            Ok(len) if bytes.len() <= 22 => {
                let mut inline = [0; 22];
                inline[..bytes.len()].copy_from_slice(bytes);
                Self::Inline(len, inline)
            }
            _ => Self::Shared(bytes.into()),
        }
    }

    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Inline(len, bytes) => &bytes[..usize::from(*len)],
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Key {}

#[derive(Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    root: ArcSwap<Root>,
    /// Held while a commit is checked and swapped in; readers never take it.
    committing: Mutex<()>,
}

impl Store for MemoryStore {
    type Snapshot = MemorySnapshot;
    type Transaction = MemoryTransaction;

    fn snapshot(&self) -> Result<MemorySnapshot> {
        Ok(MemorySnapshot { root: self.shared.root.load_full() })
    }

    fn begin(&self, _: Isolation, _: Duration) -> Result<MemoryTransaction> {
        let base = self.shared.root.load_full();
        Ok(MemoryTransaction {
            store: self.clone(),
            root: Root::clone(&base),
            base,
            writes: BTreeMap::new(),
            guards: Vec::new(),
            empty: Map::new(),
        })
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn name(&self) -> &'static str {
        "memory"
    }

    fn drop_keyspace(&self, keyspace: Keyspace, _: Duration) -> Result<()> {
        let _committing = self.shared.committing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut root = Root::clone(&self.shared.root.load());
        root.remove(&keyspace);
        self.shared.root.store(Arc::new(root));
        Ok(())
    }

    fn size(&self) -> Result<Size> {
        Ok(Size::default())
    }

    fn backup(&self, _: &Path) -> Result<()> {
        Err(Error::Unsupported(Box::new(Context::new("backup"))))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { concurrent_writers: true, ..Capabilities::MINIMAL }
    }
}

#[derive(Clone)]
pub struct MemorySnapshot {
    root: Arc<Root>,
}

impl MemorySnapshot {
    fn map(&self, keyspace: Keyspace) -> Map {
        self.root.get(&keyspace).cloned().unwrap_or_default()
    }
}

impl View for MemorySnapshot {
    type Cursor = MemoryCursor;
    type Points = MemoryPoints<Map>;

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<MemoryCursor> {
        Ok(MemoryCursor::new(self.map(keyspace), |map| Walk::new(map, bounds)))
    }

    fn points(&self, keyspace: Keyspace) -> Result<Self::Points> {
        Ok(MemoryPoints { map: self.map(keyspace), loaded: Vec::new() })
    }
}

pub struct MemoryTransaction {
    store: MemoryStore,
    base: Arc<Root>,
    root: Root,
    writes: BTreeMap<(Keyspace, Key), Option<Value>>,
    guards: Vec<(Keyspace, Key)>,
    empty: Map,
}

impl Transaction for MemoryTransaction {
    type View<'t> = &'t Self;

    fn view(&self) -> &Self {
        self
    }

    fn put(&mut self, keyspace: Keyspace, key: &[u8], value: &[u8]) -> Result<()> {
        crate::limits::check(key, value)?;
        let (key, value) = (Key::new(key), Value::from(value));
        self.root.entry(keyspace).or_default().insert(key.clone(), value.clone());
        self.writes.insert((keyspace, key), Some(value));
        Ok(())
    }

    fn delete(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        if let Some(map) = self.root.get_mut(&keyspace) {
            map.remove(key);
        }
        self.writes.insert((keyspace, Key::new(key)), None);
        Ok(())
    }

    fn delete_range(&mut self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<()> {
        let bounds = OwnedBounds::of(bounds);
        let doomed: Vec<Key> = match self.root.get(&keyspace) {
            Some(map) => map.range::<_, [u8]>((bounds.lower(), bounds.upper())).map(|(key, _)| key.clone()).collect(),
            None => Vec::new(),
        };
        doomed.iter().try_for_each(|key| self.delete(keyspace, key.as_slice()))
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8]) -> Result<()> {
        self.guards.push((keyspace, Key::new(key)));
        Ok(())
    }

    fn commit(self, _: Durability) -> Result<()> {
        let shared = &self.store.shared;
        // A panic under the lock leaves the old root in place, which is whole.
        let _committing = shared.committing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let latest = shared.root.load_full();
        if Arc::ptr_eq(&latest, &self.base) {
            shared.root.store(Arc::new(self.root));
            return Ok(());
        }
        let touched = self.writes.keys().chain(&self.guards);
        if touched.into_iter().any(|at| !same(find(&self.base, at), find(&latest, at))) {
            return Err(Error::Conflict(Box::new(Context::new(""))));
        }
        let mut merged = Root::clone(&latest);
        for ((keyspace, key), value) in self.writes {
            let map = merged.entry(keyspace).or_default();
            match value {
                Some(value) => drop(map.insert(key, value)),
                None => drop(map.remove(&key)),
            }
        }
        shared.root.store(Arc::new(merged));
        Ok(())
    }
}

fn find<'r>(root: &'r Root, (keyspace, key): &(Keyspace, Key)) -> Option<&'r Value> {
    root.get(keyspace)?.get(key)
}

/// Whether nobody wrote in between. The base keeps its values alive, so an address is never used twice.
fn same(base: Option<&Value>, latest: Option<&Value>) -> bool {
    match (base, latest) {
        (Some(base), Some(latest)) => Arc::ptr_eq(base, latest),
        (None, None) => true,
        _ => false,
    }
}

impl<'t> View for &'t MemoryTransaction {
    type Cursor = Walk<'t>;
    type Points = MemoryPoints<&'t Map>;

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<Walk<'t>> {
        Ok(Walk::new(self.root.get(&keyspace).unwrap_or(&self.empty), bounds))
    }

    fn points(&self, keyspace: Keyspace) -> Result<Self::Points> {
        Ok(MemoryPoints { map: self.root.get(&keyspace).unwrap_or(&self.empty), loaded: Vec::new() })
    }
}

pub struct MemoryPoints<M> {
    map: M,
    loaded: Vec<Option<Value>>,
}

impl<M: Borrow<Map>> Points for MemoryPoints<M> {
    fn get(&mut self, key: &[u8]) -> Result<Option<&[u8]>> {
        Ok(self.map.borrow().get(key).map(|value| &**value))
    }

    fn load(&mut self, keys: &[&[u8]]) -> Result<()> {
        let map = self.map.borrow();
        self.loaded.clear();
        self.loaded.extend(keys.iter().map(|key| map.get(*key).cloned()));
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        self.loaded.get(index)?.as_deref()
    }
}

self_cell!(
    /// A cursor that owns its map.
    pub struct MemoryCursor {
        owner: Map,
        #[covariant]
        dependent: Walk,
    }
);

impl Cursor for MemoryCursor {
    #[inline]
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        self.with_dependent_mut(|_, walk| walk.seek(edge))
    }

    #[inline]
    fn step_forward(&mut self) -> Result<bool> {
        self.with_dependent_mut(|_, walk| walk.step_forward())
    }

    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        self.with_dependent_mut(|_, walk| walk.step_back())
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.borrow_dependent().current()
    }
}

/// A cursor over a borrowed map. The map's own iterator runs either way; only a turn descends again.
pub struct Walk<'m> {
    map: &'m Map,
    bounds: OwnedBounds,
    heading: Heading,
    /// `None` before the first seek: even an empty range costs two descents.
    iter: Option<RangedIter<'m, Key, Value, DefaultSharedPtr>>,
    current: Option<(&'m [u8], &'m [u8])>,
}

impl<'m> Walk<'m> {
    fn new(map: &'m Map, bounds: Bounds<'_>) -> Self {
        Self { map, bounds: OwnedBounds::of(bounds), heading: Heading::Forward, iter: None, current: None }
    }

    #[inline]
    fn advance(&mut self) -> bool {
        let entry = self.iter.as_mut().and_then(|iter| match self.heading {
            Heading::Forward => iter.next(),
            Heading::Back => iter.next_back(),
        });
        self.current = entry.map(|(key, value)| (key.as_slice(), &**value));
        self.current.is_some()
    }
}

impl Cursor for Walk<'_> {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        let (heading, iter) = match self.bounds.confine(edge) {
            Landing::Up(from) => (Heading::Forward, self.map.range::<_, [u8]>((from, self.bounds.upper()))),
            Landing::Down(from) => (Heading::Back, self.map.range::<_, [u8]>((self.bounds.lower(), from))),
        };
        (self.heading, self.iter) = (heading, Some(iter));
        Ok(self.advance())
    }

    #[inline]
    fn step_forward(&mut self) -> Result<bool> {
        if let (Heading::Back, Some((key, _))) = (self.heading, self.current) {
            self.heading = Heading::Forward;
            self.iter = Some(self.map.range::<_, [u8]>((Bound::Excluded(key), self.bounds.upper())));
        }
        Ok(self.current.is_some() && self.advance())
    }

    #[inline]
    fn step_back(&mut self) -> Result<bool> {
        if let (Heading::Forward, Some((key, _))) = (self.heading, self.current) {
            self.heading = Heading::Back;
            self.iter = Some(self.map.range::<_, [u8]>((self.bounds.lower(), Bound::Excluded(key))));
        }
        Ok(self.current.is_some() && self.advance())
    }

    #[inline]
    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.current
    }
}
