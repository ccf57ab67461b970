//! A local store whose steps take time and can fail.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use fastrand::Rng;
use shuttle::thread;
use slate_store_simulated::{
    Bounds, Capabilities, Changes, Context, Durability, Error, Flushing, LocalStore, Result, Version, View,
    memory::{LocalMemory, MemorySnapshot},
};

use super::{KEYS, Sabotage};

/// The state of all keys.
pub(super) type State = BTreeMap<u8, u64>;

pub(super) struct SimulatedDevice {
    memory: LocalMemory,
    flushing: Flushing,
    sabotage: Sabotage,
    /// Never locked while another thread can run: the scheduler does not switch between its lock and its release.
    log: Mutex<DeviceLog>,
}

#[derive(Default)]
struct DeviceLog {
    /// The state after each commit, in the order in which they became visible.
    commits: Vec<(Version, State)>,
    durable: Version,
    /// The calls that are left until one fails, and how; `None` if none does.
    failure: Option<(usize, Failure)>,
    has_failed: bool,
}

#[derive(Clone, Copy)]
enum Failure {
    /// Nothing is applied.
    Before,
    /// What was to be applied is visible, and may be lost.
    After,
}

impl SimulatedDevice {
    pub(super) fn new(random: &mut Rng, sabotage: Sabotage) -> Self {
        let failure = (random.u8(0..3) == 0)
            .then(|| (random.usize(1..6), if random.bool() { Failure::Before } else { Failure::After }));
        let flushing = if random.bool() { Flushing::Apart } else { Flushing::DuringCommits };
        let log = Mutex::new(DeviceLog { failure, ..DeviceLog::default() });
        Self { memory: LocalMemory::default(), flushing, sabotage, log }
    }

    pub(super) fn is_durable(&self, version: Version) -> bool {
        self.log().durable >= version
    }

    pub(super) fn has_failed(&self) -> bool {
        self.log().has_failed
    }

    /// Returns the state after each commit.
    pub(super) fn commits(&self) -> Vec<(Version, State)> {
        self.log().commits.clone()
    }

    fn log(&self) -> MutexGuard<'_, DeviceLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call that can fail. Returns how it fails.
    fn failure(&self) -> Option<Failure> {
        let mut log = self.log();
        let (left, failure) = log.failure.as_mut()?;
        *left = left.saturating_sub(1);
        let failure = (*left == 0).then_some(*failure);
        log.has_failed |= failure.is_some();
        failure
    }
}

/// A handle on the device that the store owns.
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
        // Others may see the commit before this one goes on, but not another commit.
        let snapshot = device.memory.snapshot()?;
        let mut state = State::new();
        snapshot.scan(KEYS, Bounds::ALL, |key, value| {
            if let ([key], Ok(value)) = (key, value.try_into()) {
                state.insert(*key, u64::from_be_bytes(value));
            }
            ControlFlow::<()>::Continue(())
        })?;
        if device.sabotage == Sabotage::LostWrite {
            state.pop_last();
        }
        device.log().commits.push((version, state));
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
        let reaches = device.log().commits.last().map(|(version, _)| *version);
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
