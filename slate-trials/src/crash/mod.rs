//! Ends a writing process, by a kill at a random time or at a place in the code, and opens its database again. Checks that every acknowledged commit
//! exists, that each commit is complete, that none is missing between others, that indexes agree with their documents, and that the next write
//! succeeds.
//!
//! The writing process is this program with the argument `--writer`. It prints each acknowledged commit on its standard output, and before some
//! changes that they begin.

mod check;
#[cfg(unix)]
mod device;
#[cfg(unix)]
mod full;
mod places;
#[cfg(unix)]
mod power;
mod writer;

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

#[cfg(unix)]
pub use full::{FullDeviceTrial, fill, write_to_full_device};
#[cfg(unix)]
pub use power::{PowerTrial, cut};
pub use writer::write;

use self::{
    check::{Acknowledged, Ending},
    places::Places,
};
use crate::Broken;

/// What to kill, and how often.
#[derive(Clone, Debug)]
pub struct CrashTrial {
    /// The program that writes when it gets the arguments `--writer FOLDER STORE SEED`.
    pub program: PathBuf,
    /// `redb` or `rocksdb`.
    pub store: String,
    /// The number of processes that are killed. They write one after the other, 32 into each database.
    pub kills: u32,
    /// The seed of the times of the kills and of what the writers do.
    pub seed: u64,
}

/// The kills and power cuts after which another database begins: each check reads the whole database, and a backup of a long one takes longer than
/// a writer lives.
const KILLS_PER_DATABASE: u32 = 32;

/// Maximum time from the start of a writer to its kill.
const LONGEST_LIFE: Duration = Duration::from_millis(900);

/// Maximum time until a writer's first commit, on a machine that is busy with other work.
const LONGEST_START: Duration = Duration::from_secs(10);

/// Maximum time until a writer reaches the place at which it ends. Only one of 14 random actions passes most of the places.
const LONGEST_WAY: Duration = Duration::from_secs(4);

/// Exclusive limits, of which one is drawn, of the random number of times that a writer passes a place before it ends there. A process passes some
/// places once, others with each commit.
const MOST_PASSES: [u32; 4] = [1, 1, 4, 40];

/// Kills writers until a promise is broken; returns the broken promises. `report` receives lines about the progress.
pub fn run(trial: &CrashTrial, mut report: impl FnMut(String)) -> Broken {
    let mut random = fastrand::Rng::with_seed(trial.seed);
    let mut acknowledged = Acknowledged::default();
    let mut folder = tempfile::tempdir();
    let mut places = Places::of(&trial.store);
    for kill in 1..=trial.kills {
        if kill % KILLS_PER_DATABASE == 1 {
            acknowledged.begin_database();
            folder = tempfile::tempdir();
        }
        let folder = match &mut folder {
            Ok(folder) => folder,
            Err(error) => return vec![format!("no temporary folder: {error}")],
        };
        let seed = random.u64(..);
        let place = if random.bool() { places.next() } else { None };
        let most = random.choice(MOST_PASSES).unwrap_or(1);
        let place = place.map(|place| (place, random.u32(0..most)));
        // Without this, files as short as these are never compacted in steps.
        let steps = random.bool().then(|| "steps-of-short-files=return".to_owned());
        let mut writer = Writer { place, ways: steps, ..Writer::new(&trial.program, &trial.store, seed) };
        // The time for reaching a place does not include the start of the process.
        writer.lives_from_first_commit = place.is_some();
        let life = if place.is_some() { LONGEST_WAY } else { LONGEST_LIFE.mul_f64(random.f64()) };
        let (lines, end) = match writer.ended(folder.path(), life) {
            Ok(ended) => ended,
            Err(error) => return vec![format!("kill {kill}: {error}")],
        };
        if let End::AtPlace(place) = end {
            places.count(place);
        }
        lines.iter().for_each(|line| acknowledged.note(line));
        let broken = check::check(&url(&trial.store, folder.path()), folder.path(), Ending::Killed, &mut acknowledged);
        if !broken.is_empty() {
            folder.disable_cleanup(true);
            let place = format!("the database stays in {}", folder.path().display());
            return broken.into_iter().map(|promise| format!("kill {kill}: {promise}")).chain([place]).collect();
        }
        if kill.is_power_of_two() || kill == trial.kills {
            report(format!("{kill} kills, {}", acknowledged.summary()));
        }
    }
    report(places.summary());
    let mut broken = acknowledged.checked();
    broken.extend(places.unreached(trial.kills));
    broken
}

/// The URL of the database in the folder.
fn url(store: &str, folder: &Path) -> String {
    url_of(store, folder, "db")
}

/// The URL of another database in the folder.
fn url_of(store: &str, folder: &Path, name: &str) -> String {
    format!("{store}:{}", folder.join(name).display())
}

/// A process that writes until it is killed.
struct Writer<'w> {
    program: &'w Path,
    store: &'w str,
    seed: u64,
    /// The place in the code at which it ends, and how often it passes the place before.
    place: Option<(&'static str, u32)>,
    /// Further fail points, in the notation of the crate `fail`.
    ways: Option<String>,
    environment: Vec<(&'static str, String)>,
    /// Whether it may end because a write fails.
    may_fail: bool,
    /// Whether the time until its kill begins with its first acknowledged commit.
    lives_from_first_commit: bool,
}

impl<'w> Writer<'w> {
    fn new(program: &'w Path, store: &'w str, seed: u64) -> Self {
        Self {
            program,
            store,
            seed,
            place: None,
            ways: None,
            environment: Vec::new(),
            may_fail: false,
            lives_from_first_commit: false,
        }
    }

    /// Starts the process, and kills it after `life` unless it ends before. Returns the lines of its output, and how it ended.
    fn ended(&self, folder: &Path, life: Duration) -> std::io::Result<(Vec<String>, End)> {
        let seed = self.seed;
        let place = self.place.map(|(place, passes)| format!("{place}={passes}*off->return"));
        let points: Vec<String> = place.into_iter().chain(self.ways.clone()).collect();
        let mut writer = Command::new(self.program)
            .env("FAILPOINTS", points.join(";"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .arg("--writer")
            .arg(folder)
            .arg(self.store)
            .arg(seed.to_string())
            .stdout(Stdio::piped())
            .stderr(if self.may_fail { Stdio::null() } else { Stdio::inherit() })
            .spawn()?;
        let Some(output) = writer.stdout.take() else { return Err(std::io::Error::other("the writer has no output")) };
        let (first, begun) = mpsc::channel();
        let reading = thread::spawn(move || {
            // The last line may be cut off.
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            let tell = |_: &String| {
                // Fails if nothing waits for the first line.
                let _ = first.send(());
            };
            lines.inspect(tell).collect::<Vec<String>>()
        });
        if self.lives_from_first_commit {
            // Also returns when the process ends.
            let _ = begun.recv_timeout(LONGEST_START);
        }
        let end = Instant::now() + life;
        while Instant::now() < end && writer.try_wait()?.is_none() {
            thread::sleep(Duration::from_millis(2));
        }
        // A writer that ends at a place in the code or is killed has no exit code.
        match writer.try_wait()?.and_then(|status| status.code()) {
            Some(writer::FAILED) if self.may_fail => {}
            Some(code) => {
                return Err(std::io::Error::other(format!("the writer (seed {seed}) ended by itself with {code}")));
            }
            None => {}
        }
        // On Unix this is SIGKILL: nothing of the process runs any more.
        writer.kill()?;
        let status = writer.wait()?;
        let lines = reading.join().map_err(|_| std::io::Error::other("reading the output failed"))?;
        let end = match (signal(status), self.place) {
            // No signal: a writer that may fail has ended with an exit code.
            (None | Some(SIGKILL), _) => End::Killed,
            (Some(SIGABRT), Some((place, _))) => End::AtPlace(place),
            // For example a stack overflow or a segmentation fault.
            _ => return Err(std::io::Error::other(format!("the writer (seed {seed}) ended by itself: {status}"))),
        };
        Ok((lines, end))
    }
}

/// How a writer has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// By the signal, or because a write failed.
    Killed,
    AtPlace(&'static str),
}

/// Returns the signal that ended the process, if any. Without Unix, a negative exit code counts as `SIGABRT`, by which a place in the code ends the
/// process.
fn signal(status: std::process::ExitStatus) -> Option<i32> {
    #[cfg(unix)]
    return std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    status.code().is_some_and(|code| code < 0).then_some(SIGABRT)
}

/// The signal by which `abort` ends a process, on every Unix.
const SIGABRT: i32 = 6;

/// The signal by which a process is killed, on every Unix.
const SIGKILL: i32 = 9;
