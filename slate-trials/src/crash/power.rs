//! Cuts the power of a process that writes to RocksDB, or lets its device fail.
//!
//! A library (`shim/device.c`) that is loaded into the process records up to which length each file is synced. The process is killed, and then its
//! files lose unsynced bytes: all of them, those from some offset on, or some sectors, which become zeros or random bytes. RocksDB only appends to
//! its files, so the length is enough. Names of files are not lost: the trial does not cover the loss of a file's creation or renaming whose
//! folder was not synced.
//!
//! In half of the processes the device also fails: each write, sync and renaming after a random one returns an error, or each read after a random
//! one, or both.

use std::{path::PathBuf, time::Duration};

use super::{
    KILLS_PER_DATABASE, LONGEST_LIFE, Writer,
    check::{self, Acknowledged, Ending},
    device::{Synced, compile},
    url,
};
use crate::Broken;

/// The program whose power is cut, and how often.
#[derive(Clone, Debug)]
pub struct PowerTrial {
    /// The program that writes when it gets the arguments `--writer FOLDER STORE SEED`.
    pub program: PathBuf,
    /// The number of power cuts.
    pub cuts: u32,
    /// The seed of the times of the cuts, of what is lost, and of what the writers do.
    pub seed: u64,
}

/// The error `ENOSPC`: no space is left on the device.
const FULL: u32 = 28;

/// The error `EIO`: the device fails.
const BROKEN: u32 = 5;

/// Maximum number of writes, syncs and renamings before the device fails.
const MOST_WRITES: u32 = 3_000;

/// Maximum number of reads before the device fails. It is smaller because RocksDB reads mostly from memory.
const MOST_READS: u32 = 1_000;

const STORE: &str = "rocksdb";

/// Cuts the power until a promise is broken; returns the broken promises. `report` receives lines about the progress.
///
/// # Errors
/// Fails if the system has no C compiler, or a file cannot be read or written.
pub fn cut(trial: &PowerTrial, mut report: impl FnMut(String)) -> std::io::Result<Broken> {
    let tools = tempfile::tempdir()?;
    let library = compile(tools.path())?;
    let mut folder = tempfile::tempdir()?;
    let log = tools.path().join("log");
    let mut random = fastrand::Rng::with_seed(trial.seed);
    let mut acknowledged = Acknowledged::default();
    let (mut failures, mut at_risk) = (0, 0);
    for cut in 1..=trial.cuts {
        if cut % KILLS_PER_DATABASE == 1 {
            acknowledged.begin_database();
            folder = tempfile::tempdir()?;
        }
        let database = folder.path().join("db");
        let mut synced = Synced::all(folder.path())?;
        std::fs::write(&log, "")?;
        let mut writer = Writer::new(&trial.program, STORE, random.u64(..));
        writer.lives_from_first_commit = random.u8(..4) > 0;
        writer.environment =
            vec![("LD_PRELOAD", library.display().to_string()), ("SLATE_DEVICE_LOG", log.display().to_string())];
        if random.bool() {
            let (fails_writes, fails_reads) =
                random.choice([(true, false), (false, true), (true, true)]).unwrap_or_default();
            writer.environment.push(("SLATE_DEVICE_FOLDER", database.display().to_string()));
            if fails_writes {
                let error = if random.bool() { FULL } else { BROKEN };
                writer.environment.push(("SLATE_DEVICE_FAILS", format!("{error}:{}", random.u32(..MOST_WRITES))));
            }
            if fails_reads {
                writer.environment.push(("SLATE_DEVICE_READS", format!("{BROKEN}:{}", random.u32(..MOST_READS))));
            }
            writer.may_fail = true;
            failures += 1;
        }
        let life = LONGEST_LIFE.mul_f64(random.f64()) + Duration::from_millis(20);
        for line in writer.ended(folder.path(), life)?.0 {
            acknowledged.note(&line);
        }
        synced.read(&log)?;
        at_risk += synced.cut(folder.path(), &mut random)?;
        let broken = check::check(&url(STORE, folder.path()), folder.path(), Ending::PowerCut, &mut acknowledged);
        if !broken.is_empty() {
            let place = format!("the database is kept in {}", folder.keep().display());
            return Ok(broken.into_iter().map(|promise| format!("cut {cut}: {promise}")).chain([place]).collect());
        }
        if cut.is_power_of_two() || cut == trial.cuts {
            let lives =
                format!("{failures} of them with a device that was set to fail, {at_risk} unsynced bytes at risk");
            report(format!("{cut} cuts, {lives}, {}", acknowledged.summary()));
        }
    }
    Ok(acknowledged.checked())
}
