//! The optimistic layer under a scheduler: transactions, validation, group commit, failures of the device and crashes, in interleavings that
//! a seed determines.
//!
//! `slate-store-simulated` is the source of `slate-store` compiled with the locks of `shuttle`. One thread runs at a time, and at each
//! lock, atomic access and step of the simulated device the scheduler chooses the next one. A schedule that breaks a promise is executed
//! again by its seed: everything else that is random is drawn from the same seed.
//!
//! ```text
//! threads ── Optimistic (the real one) ── SimulatedDevice ── LocalMemory (the real one)
//!                                          waits at each step, fails when the seed says so,
//!                                          remembers every commit, and which are on the device
//!
//! life 1: threads, until all have ended or the device fails ── crash ── what is on the device is left, and perhaps commits after that
//! life 2: the layer is opened over what is on the device: are the acknowledged commits there, and whole? ── threads … ── crash ── life 3
//! ```

mod check;
mod device;
mod recovery;

use std::{
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fastrand::Rng;
use shuttle::{
    Config, FailurePersistence, MaxSteps, Runner,
    scheduler::{PctScheduler, RandomScheduler},
    thread,
};
use slate_store_simulated::{
    Bounds, Durability, Error, Guard, Keyspace, Optimistic, Result, Store, Transaction, TransactionExt, Version, View,
};

use self::{
    device::SimulatedDevice,
    recovery::{Recovered, check_recovered},
};
use crate::Broken;

/// The schedules to execute.
#[derive(Clone, Copy, Debug)]
pub struct SimulationTrial {
    /// The number of schedules, each with a seed of its own.
    pub schedules: u32,
    /// The seed of the first schedule; each further one has the next number.
    pub seed: u64,
    /// A fault of the device that the checks must find, to test the checks.
    pub sabotage: Sabotage,
}

/// How the simulated device breaks its contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sabotage {
    /// The device keeps its contract.
    #[default]
    None,
    /// A flush returns before the data are on the device.
    EarlyFlush,
    /// A commit lacks one of its writes.
    LostWrite,
    /// A crash loses commits that are on the device.
    LostSync,
    /// A crash leaves a commit in part.
    TornCommit,
}

/// Counters: each transaction adds one to those that it writes.
const KEYS: Keyspace = Keyspace(1);
/// For each counter, the version of the commit that wrote it last, if the commit's last stage stores it.
const STAMPS: Keyspace = Keyspace(3);
/// A keyspace that threads drop at random. Nothing depends on its contents.
const SCRATCH: Keyspace = Keyspace(2);

/// A transaction and its outcome.
#[derive(Debug)]
struct Attempt {
    base: Version,
    /// Keys with the values that were read.
    reads: Vec<(u8, u64)>,
    /// Keys that no other transaction may have changed since.
    guarded: Vec<u8>,
    writes: Vec<(u8, u64)>,
    durability: Durability,
    /// Whether the commit's last stage stores its version beside each counter that it writes, or removes the stored one.
    stamps: Stamps,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stamps {
    Stored,
    Removed,
}

impl Attempt {
    /// Returns the version that is stored beside each of its counters if it was committed with this version.
    fn stamp(&self, version: Version) -> Option<Version> {
        (self.stamps == Stamps::Stored).then_some(version)
    }
}

#[derive(Debug)]
enum Outcome {
    Committed {
        version: Version,
        is_durable: bool,
    },
    Conflict,
    /// The device failed.
    Failed,
}

/// The transactions of a schedule, and the number of times that the layer was opened after a crash.
#[derive(Default)]
struct Schedule {
    attempts: Vec<Attempt>,
    reopened: u32,
}

/// Executes schedules until one breaks a promise; returns the broken promise. `report` receives the counts.
pub fn run(trial: &SimulationTrial, mut report: impl FnMut(&str)) -> Broken {
    let (mut committed, mut conflicts, mut failed, mut reopened) = (0, 0, 0, 0);
    for number in 0..trial.schedules {
        let seed = trial.seed.wrapping_add(number.into());
        match schedule(seed, trial.sabotage) {
            Ok(schedule) => {
                reopened += schedule.reopened;
                for attempt in schedule.attempts {
                    match attempt.outcome {
                        Outcome::Committed { .. } => committed += 1,
                        Outcome::Conflict => conflicts += 1,
                        Outcome::Failed => failed += 1,
                    }
                }
            }
            Err(broken) => return vec![format!("seed {seed}: {broken}; repeat it with --seed {seed} --schedules 1")],
        }
    }
    report(&format!(
        "{} schedules, {committed} commits, {conflicts} conflicts, {failed} ended by a failure of the device, {reopened} reopened after a crash",
        trial.schedules
    ));
    Vec::new()
}

/// Executes and checks the schedule of a seed. Fails with the broken promise.
fn schedule(seed: u64, sabotage: Sabotage) -> std::result::Result<Schedule, String> {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    // A schedule takes a few thousand steps; one without an end is a livelock.
    config.max_steps = MaxSteps::FailAfter(1_000_000);
    let found = Arc::new(Mutex::new(Ok(Schedule::default())));
    let into = Arc::clone(&found);
    let body = move || {
        let checked = scenario(&mut Rng::with_seed(seed), sabotage);
        *into.lock().unwrap_or_else(PoisonError::into_inner) = checked;
    };
    // Uniformly random schedules find faults that need many switches; schedules by priorities find those that need few at certain places.
    let ran = panic::catch_unwind(AssertUnwindSafe(|| match seed % 2 {
        0 => Runner::new(RandomScheduler::new_from_seed(seed, 1), config).run(body),
        _ => Runner::new(PctScheduler::new_from_seed(seed, 3, 1), config).run(body),
    }));
    if ran.is_err() {
        return Err("a thread panicked, or all wait for each other".into());
    }
    std::mem::replace(&mut *found.lock().unwrap_or_else(PoisonError::into_inner), Ok(Schedule::default()))
}

/// Runs one to three lives of a database, with a crash between two of them, and checks each.
fn scenario(random: &mut Rng, sabotage: Sabotage) -> std::result::Result<Schedule, String> {
    let lives = random.u32(1..4);
    let retains = if lives > 1 { device::Retains::Commits } else { device::Retains::Nothing };
    let mut device = Arc::new(SimulatedDevice::new(random, sabotage, retains));
    let mut schedule = Schedule::default();
    loop {
        let attempts = live(&device, random)?;
        if schedule.reopened + 1 == lives {
            schedule.attempts.extend(attempts);
            return Ok(schedule);
        }
        let next = Arc::new(device.after_crash(random).ok_or("the device has no commit after the crash")?);
        let found =
            Recovered::read(&next).map_err(|error| format!("the database cannot be read after a crash: {error}"))?;
        check_recovered(device.begin(), &attempts, &found)?;
        schedule.attempts.extend(attempts);
        schedule.reopened += 1;
        device = next;
    }
}

/// Runs threads with transactions on one store until they end, and checks what they read and committed.
fn live(device: &Arc<SimulatedDevice>, random: &mut Rng) -> std::result::Result<Vec<Attempt>, String> {
    let store = Optimistic::over(device::Handle(Arc::clone(device)));
    let threads: Vec<_> = (0..random.usize(2..5))
        .map(|_| {
            let (store, device, mut random) = (store.clone(), Arc::clone(device), Rng::with_seed(random.u64(..)));
            thread::spawn(move || {
                (0..random.usize(1..4)).filter_map(|_| step(&store, &device, &mut random)).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut attempts = Vec::new();
    for thread in threads {
        attempts.extend(thread.join().map_err(|_| "a thread panicked")?);
    }
    check::check(device, &attempts)?;
    match (device.has_failed(), store.begin(Duration::ZERO)) {
        (true, Ok(_)) => Err("a transaction begins after a failure of the device".into()),
        (false, Err(error)) => Err(format!("no transaction begins: {error}")),
        _ => Ok(attempts),
    }
}

type Simulated = Optimistic<device::Handle>;

/// Makes a random call of the store. Returns the transaction, if it was one.
fn step(store: &Simulated, device: &SimulatedDevice, random: &mut Rng) -> Option<Attempt> {
    match random.usize(0..12) {
        // After a failure of the device these calls fail, too.
        0 => drop(store.flush()),
        1 => drop(store.drop_keyspace(SCRATCH, Duration::ZERO)),
        _ => return transaction(store, device, random),
    }
    None
}

/// Reads, guards and increments random counters, and commits. `None` if no transaction began or a read failed.
fn transaction(store: &Simulated, device: &SimulatedDevice, random: &mut Rng) -> Option<Attempt> {
    let begun = if random.u8(0..4) == 0 { store.try_begin() } else { store.begin(Duration::ZERO).ok() };
    let mut transaction = begun?;
    let base = transaction.view().version();
    let (mut reads, mut guarded, mut writes) = (Vec::new(), Vec::new(), Vec::new());
    let durability = if random.bool() { Durability::Sync } else { Durability::Deferred };
    let mut change = || -> Result<()> {
        for key in 0..3_u8 {
            match random.u8(0..4) {
                0 => {
                    reads.push((key, read(&transaction.view(), key)?));
                    transaction.guard(KEYS, &[key], if random.bool() { Guard::Shared } else { Guard::Exclusive })?;
                    guarded.push(key);
                }
                1 => {
                    let value = read(&transaction.view(), key)?;
                    reads.push((key, value));
                    transaction.put(KEYS, &[key], &(value + 1).to_be_bytes())?;
                    writes.push((key, value + 1));
                }
                2 => reads.push((key, read(&transaction.view(), key)?)),
                _ => {}
            }
        }
        if random.u8(0..8) == 0 {
            transaction.put(SCRATCH, &[random.u8(..)], b"")?;
            transaction.delete_range(SCRATCH, Bounds { start: Some(&[9]), end: None })?;
        }
        Ok(())
    };
    change().ok()?;
    if writes.is_empty() && guarded.is_empty() {
        return None;
    }
    let stamps = if !writes.is_empty() && random.bool() { Stamps::Stored } else { Stamps::Removed };
    let committed = match stamps {
        Stamps::Stored => transaction.commit_with(durability, &mut |version, last| {
            let stamp = version.0.to_be_bytes();
            writes.iter().try_for_each(|(key, _)| last.write(STAMPS, &[(&[*key], Some(&stamp))]))
        }),
        Stamps::Removed => {
            writes.iter().try_for_each(|(key, _)| transaction.write(STAMPS, &[(&[*key], None)])).ok()?;
            transaction.commit(durability)
        }
    };
    let outcome = match committed {
        // A commit of guards alone makes no version of its own and needs no device.
        Ok(version) => {
            let is_durable = durability == Durability::Deferred || writes.is_empty() || device.is_durable(version);
            Outcome::Committed { version, is_durable }
        }
        Err(Error::Conflict(_)) => Outcome::Conflict,
        Err(_) => Outcome::Failed,
    };
    Some(Attempt { base, reads, guarded, writes, durability, stamps, outcome })
}

fn read(view: &impl View, key: u8) -> Result<u64> {
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_be_bytes);
    Ok(view.get(KEYS, &[key], number)?.unwrap_or_default())
}
