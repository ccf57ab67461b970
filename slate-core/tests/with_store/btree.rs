//! A complete backend: ordered maps behind a lock. docs/writing-a-backend.md walks through it.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound::{Excluded, Unbounded},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use slate_store::{
    Bounds, Capabilities, Context, Cursor, Durability, Edge, Error, Guard, Keyspace, Landing, OwnedBounds, PointReader,
    Result, Size, SizeDetail, Store, Transaction, Version, View, Write,
};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The keyspaces as of one commit. A clone shares the maps.
#[derive(Clone, Default)]
struct State(BTreeMap<Keyspace, Arc<Map>>);

/// The last commit, and the data for conflict checks.
#[derive(Default)]
struct Last {
    state: State,
    version: Version,
    /// Per key, the last commit that wrote it or guarded it exclusively, and the last one that guarded it shared.
    accesses: HashMap<(Keyspace, Vec<u8>), [Version; 2]>,
    /// The last drop of each keyspace.
    drops: HashMap<Keyspace, Version>,
}

#[derive(Clone, Default)]
pub(crate) struct BTreeStore(Arc<Mutex<Last>>);

impl BTreeStore {
    fn lock(&self) -> MutexGuard<'_, Last> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const CAPABILITIES: Capabilities =
    Capabilities { name: "btree", concurrent_writers: true, exclusive: true, ..Capabilities::MINIMAL };

impl Store for BTreeStore {
    type Snapshot = BTreeView;
    type Transaction = BTreeTransaction;

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn snapshot(&self) -> Result<BTreeView> {
        let last = self.lock();
        Ok(BTreeView { state: last.state.clone(), version: last.version })
    }

    fn begin(&self, _: Duration) -> Result<BTreeTransaction> {
        let view = self.snapshot()?;
        Ok(BTreeTransaction { store: self.clone(), view, writes: BTreeMap::new(), guards: Vec::new() })
    }

    fn drop_keyspace(&self, keyspace: Keyspace, _: Duration) -> Result<Version> {
        let mut last = self.lock();
        if last.state.0.remove(&keyspace).is_some() {
            last.version.0 += 1;
            let version = last.version;
            last.drops.insert(keyspace, version);
        }
        Ok(last.version)
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn backup(&self, _: &Path) -> Result<()> {
        Err(Error::Unsupported(Box::new(Context::new("this store has no backup"))))
    }

    fn size(&self, _: SizeDetail) -> Result<Size> {
        Ok(Size::default())
    }
}

/// A view of a commit, or of a transaction's own state.
#[derive(Clone)]
pub(crate) struct BTreeView {
    state: State,
    version: Version,
}

impl View for BTreeView {
    type Cursor = BTreeCursor;
    type PointReader = BTreePointReader;

    fn version(&self) -> Version {
        self.version
    }

    fn cursor(&self, keyspace: Keyspace, bounds: Bounds<'_>) -> Result<BTreeCursor> {
        let map = self.state.0.get(&keyspace).filter(|_| !bounds.is_empty()).cloned().unwrap_or_default();
        Ok(BTreeCursor { map, bounds: OwnedBounds::of(bounds), key: None })
    }

    fn point_reader(&self) -> Result<BTreePointReader> {
        Ok(BTreePointReader { state: self.state.clone(), keys: Vec::new() })
    }
}

pub(crate) struct BTreeCursor {
    map: Arc<Map>,
    bounds: OwnedBounds,
    /// The cursor's position.
    key: Option<Vec<u8>>,
}

impl BTreeCursor {
    /// Moves to `key` if it is within the bounds.
    fn move_to(&mut self, key: Option<Vec<u8>>) -> bool {
        self.key = key.filter(|key| self.bounds.bounds().contains(key));
        self.key.is_some()
    }
}

impl Cursor for BTreeCursor {
    fn seek(&mut self, edge: Edge<'_>) -> Result<bool> {
        let entry = match self.bounds.bounds().confine(edge) {
            Landing::Up(from) => self.map.range::<[u8], _>((from, Unbounded)).next(),
            Landing::Down(to) => self.map.range::<[u8], _>((Unbounded, to)).next_back(),
        };
        let key = entry.map(|(key, _)| key.clone());
        Ok(self.move_to(key))
    }

    fn step_forward(&mut self) -> Result<bool> {
        let Some(key) = self.key.take() else { return Ok(false) };
        let next = self.map.range::<[u8], _>((Excluded(&key[..]), Unbounded)).next().map(|(key, _)| key.clone());
        Ok(self.move_to(next))
    }

    fn step_back(&mut self) -> Result<bool> {
        let Some(key) = self.key.take() else { return Ok(false) };
        let next = self.map.range::<[u8], _>((Unbounded, Excluded(&key[..]))).next_back().map(|(key, _)| key.clone());
        Ok(self.move_to(next))
    }

    fn current(&self) -> Option<(&[u8], &[u8])> {
        self.map.get_key_value(self.key.as_ref()?).map(|(key, value)| (&key[..], &value[..]))
    }
}

pub(crate) struct BTreePointReader {
    state: State,
    keys: Vec<(Keyspace, Vec<u8>)>,
}

impl PointReader for BTreePointReader {
    fn load(&mut self, keys: &[(Keyspace, &[u8])]) -> Result<()> {
        self.keys = keys.iter().map(|(keyspace, key)| (*keyspace, key.to_vec())).collect();
        Ok(())
    }

    fn loaded(&self, index: usize) -> Option<&[u8]> {
        let (keyspace, key) = self.keys.get(index)?;
        self.state.0.get(keyspace)?.get(key).map(|value| &value[..])
    }
}

pub(crate) struct BTreeTransaction {
    store: BTreeStore,
    /// The commit that the transaction reads, with its own writes applied.
    view: BTreeView,
    writes: BTreeMap<(Keyspace, Vec<u8>), Option<Vec<u8>>>,
    guards: Vec<(Keyspace, Vec<u8>, Guard)>,
}

fn apply(state: &mut State, keyspace: Keyspace, key: &[u8], value: Option<&[u8]>) {
    let map = Arc::make_mut(state.0.entry(keyspace).or_default());
    match value {
        Some(value) => drop(map.insert(key.to_vec(), value.to_vec())),
        None => drop(map.remove(key)),
    }
}

impl Transaction for BTreeTransaction {
    type View<'t> = BTreeView;

    fn view(&self) -> BTreeView {
        self.view.clone()
    }

    fn write(&mut self, keyspace: Keyspace, writes: &[Write<'_>]) -> Result<()> {
        CAPABILITIES.check_sizes(writes)?;
        for (key, value) in writes {
            apply(&mut self.view.state, keyspace, key, *value);
            self.writes.insert((keyspace, key.to_vec()), value.map(<[u8]>::to_vec));
        }
        Ok(())
    }

    fn guard(&mut self, keyspace: Keyspace, key: &[u8], guard: Guard) -> Result<()> {
        self.guards.push((keyspace, key.to_vec(), guard));
        Ok(())
    }

    fn commit(self, _: Durability) -> Result<Version> {
        let mut last = self.store.lock();
        let base = self.view.version;
        let accesses =
            |keyspace, key: &Vec<u8>| last.accesses.get(&(keyspace, key.clone())).copied().unwrap_or_default();
        let was_dropped = |keyspace| last.drops.get(&keyspace).is_some_and(|dropped| *dropped > base);
        let write_conflicts = self.writes.keys().any(|(keyspace, key)| {
            let [written, _] = accesses(*keyspace, key);
            was_dropped(*keyspace) || written > base
        });
        let guard_conflicts = self.guards.iter().any(|(keyspace, key, guard)| {
            let [written, shared] = accesses(*keyspace, key);
            was_dropped(*keyspace) || written > base || (*guard == Guard::Exclusive && shared > base)
        });
        if write_conflicts || guard_conflicts {
            let detail = "another transaction first committed a change to the same keys";
            return Err(Error::Conflict(Box::new(Context::new(detail))));
        }
        if self.writes.is_empty() && self.guards.iter().all(|(.., guard)| *guard == Guard::Shared) {
            return Ok(base);
        }
        last.version.0 += 1;
        let version = last.version;
        for (keyspace, key, guard) in self.guards {
            let [written, shared] = last.accesses.entry((keyspace, key)).or_default();
            *(if guard == Guard::Shared { shared } else { written }) = version;
        }
        for ((keyspace, key), value) in self.writes {
            apply(&mut last.state, keyspace, &key, value.as_deref());
            last.accesses.entry((keyspace, key)).or_default()[0] = version;
        }
        Ok(version)
    }
}
