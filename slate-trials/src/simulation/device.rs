//! A simulated local store: its steps can wait and fail, and after a crash it has at least the commits that are on the device.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fastrand::Rng;
use shuttle::thread;
use slate_store_simulated::{
    Bounds, Capabilities, Changes, Context, Durability, Error, Flushing, LocalStore, Optimistic, Result, Store,
    Transaction, TransactionExt, Version, View,
    memory::{LocalMemory, MemorySnapshot},
};

use super::{KEYS, STAMPS, Sabotage};

/// A counter, and the version that is stored beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counter {
    pub(super) value: u64,
    pub(super) stamp: Option<Version>,
}

/// The state of all keys.
pub(super) type State = BTreeMap<u8, Counter>;

/// A commit's version, and the state of all keys when it became visible.
#[derive(Clone, Debug, Default)]
pub(super) struct Commit {
    pub(super) version: Version,
    pub(super) state: State,
}

/// Whether a device can be opened again after a crash. If it can, it retains a snapshot of each commit, so that no commit is
/// made in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retains {
    Nothing,
    Commits,
}

pub(super) struct SimulatedDevice {
    memory: LocalMemory,
    flushing: Flushing,
    sabotage: Sabotage,
    retains: Retains,
    /// The state when the device was opened.
    begin: Commit,
    /// An ordinary mutex: the scheduler does not switch threads while it is locked.
    log: Mutex<DeviceLog>,
}

#[derive(Default)]
struct DeviceLog {
    /// The state when the device was opened, then each commit, in the order in which they became visible.
    commits: Vec<Commit>,
    /// Snapshots of the commits, if they are retained.
    snapshots: Vec<MemorySnapshot>,
    durable: Version,
    /// The number of calls up to the one that fails, and how it fails; `None` if none does.
    failure: Option<(usize, Failure)>,
    has_failed: bool,
}

#[derive(Clone, Copy)]
enum Failure {
    /// The call fails before it applies its writes.
    Before,
    /// The call fails after it applied its writes: they are visible, but a crash may lose them.
    After,
}

impl SimulatedDevice {
    /// Creates an empty device. Whether and when a call fails is drawn from `random`.
    pub(super) fn new(random: &mut Rng, sabotage: Sabotage, retains: Retains) -> Self {
        Self::over(LocalMemory::default(), Commit::default(), random, sabotage, retains)
    }

    fn over(memory: LocalMemory, begin: Commit, random: &mut Rng, sabotage: Sabotage, retains: Retains) -> Self {
        let failure = (random.u8(0..3) == 0)
            .then(|| (random.usize(1..6), if random.bool() { Failure::Before } else { Failure::After }));
        let flushing = if random.bool() { Flushing::Apart } else { Flushing::DuringCommits };
        let snapshots = if retains == Retains::Commits { memory.snapshot().into_iter().collect() } else { Vec::new() };
        let commits = vec![begin.clone()];
        let log = Mutex::new(DeviceLog { commits, snapshots, durable: begin.version, failure, ..DeviceLog::default() });
        Self { memory, flushing, sabotage, retains, begin, log }
    }

    /// Returns the device after a crash: with the commits up to a random one, including all that are on the device. `None` if no
    /// snapshots are retained.
    pub(super) fn after_crash(&self, random: &mut Rng) -> Option<Self> {
        let (sabotage, retains) = (self.sabotage, self.retains);
        let (commit, snapshot) = {
            let log = self.log();
            let synced = log.commits.partition_point(|commit| commit.version <= log.durable);
            let last = log.commits.len();
            let number =
                if sabotage == Sabotage::LostSync { random.usize(1..=synced) } else { random.usize(synced..=last) };
            (log.commits.get(number - 1)?.clone(), log.snapshots.get(number - 1)?.clone())
        };
        let mut next = Self::over(LocalMemory::of(&snapshot), commit, random, sabotage, retains);
        if sabotage == Sabotage::TornCommit {
            next = next.torn(random)?;
        }
        Some(next)
    }

    /// Returns the device without one of its counters, as [`Sabotage::TornCommit`] demands.
    fn torn(self, random: &mut Rng) -> Option<Self> {
        let begin = self.begin.clone();
        let device = Arc::new(Self { sabotage: Sabotage::None, ..self });
        device.log().failure = None;
        let mut transaction = Optimistic::over(Handle(Arc::clone(&device))).begin(Duration::ZERO).ok()?;
        transaction.delete(KEYS, &[random.u8(0..3)]).ok()?;
        transaction.commit(Durability::Sync).ok()?;
        let memory = LocalMemory::of(&device.memory.snapshot().ok()?);
        Some(Self::over(memory, begin, random, Sabotage::TornCommit, device.retains))
    }

    /// Returns the state when the device was opened.
    pub(super) fn begin(&self) -> &Commit {
        &self.begin
    }

    pub(super) fn is_durable(&self, version: Version) -> bool {
        self.log().durable >= version
    }

    pub(super) fn has_failed(&self) -> bool {
        self.log().has_failed
    }

    /// Returns the state when the device was opened, then each commit.
    pub(super) fn commits(&self) -> Vec<Commit> {
        self.log().commits.clone()
    }

    fn log(&self) -> MutexGuard<'_, DeviceLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call that can fail. Returns how it fails; `None` if it does not.
    fn failure(&self) -> Option<Failure> {
        let mut log = self.log();
        let (left, failure) = log.failure.as_mut()?;
        *left = left.saturating_sub(1);
        let failure = (*left == 0).then_some(*failure);
        log.has_failed |= failure.is_some();
        failure
    }
}

/// Returns all counters of a view.
pub(super) fn state_of(view: &impl View) -> Result<State> {
    let mut state = State::new();
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_be_bytes);
    view.scan(KEYS, Bounds::ALL, |key, value| {
        if let [key] = key {
            state.insert(*key, Counter { value: number(value), stamp: None });
        }
        ControlFlow::<()>::Continue(())
    })?;
    view.scan(STAMPS, Bounds::ALL, |key, stamp| {
        if let [key] = key {
            state.entry(*key).or_default().stamp = Some(Version(number(stamp)));
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(state)
}

/// The handle through which the store uses the device.
pub(super) struct Handle(pub(super) Arc<SimulatedDevice>);

fn failed() -> Error {
    Error::OutcomeUnknown(Box::new(Context::new("the simulated device failed")))
}

impl LocalStore for Handle {
    type Snapshot = MemorySnapshot;

    fn capabilities(&self) -> Capabilities {
        Capabilities { persistent: true, ..self.0.memory.capabilities() }
    }

    fn snapshot(&self) -> Result<MemorySnapshot> {
        thread::yield_now();
        self.0.memory.snapshot()
    }

    fn try_snapshot(&self) -> Option<MemorySnapshot> {
        self.0.memory.try_snapshot()
    }

    fn apply(&self, changes: &mut Changes<'_>, durability: Durability) -> Result<Version> {
        let device = &*self.0;
        thread::yield_now();
        let failure = device.failure();
        if let Some(Failure::Before) = failure {
            return Err(Error::Io(Box::new(Context::new("the simulated device failed"))));
        }
        let version = device.memory.apply(changes, durability)?;
        // Readers may see the commit before this thread continues, but no further commit can happen.
        let snapshot = device.memory.snapshot()?;
        let mut state = state_of(&snapshot)?;
        if device.sabotage == Sabotage::LostWrite {
            state.pop_last();
        }
        let mut log = device.log();
        log.commits.push(Commit { version, state });
        if device.retains == Retains::Commits {
            log.snapshots.push(snapshot);
        }
        drop(log);
        thread::yield_now();
        match failure {
            Some(_) => Err(failed()),
            None => {
                if durability == Durability::Sync {
                    device.log().durable = version;
                }
                Ok(version)
            }
        }
    }

    fn flush(&self) -> Result<()> {
        let device = &*self.0;
        let reaches = device.log().commits.last().map(|commit| commit.version);
        thread::yield_now();
        if device.failure().is_some() {
            return Err(failed());
        }
        if device.sabotage != Sabotage::EarlyFlush
            && let Some(reaches) = reaches
        {
            let mut log = device.log();
            log.durable = log.durable.max(reaches);
        }
        thread::yield_now();
        Ok(())
    }

    fn flushing(&self) -> Flushing {
        self.0.flushing
    }
}
