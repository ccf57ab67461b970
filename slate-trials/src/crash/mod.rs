//! Ends a process that writes, by a kill at a random moment or at one of ten places in the code, and checks what is there when its database is opened again: every acknowledged commit,
//! nothing of a commit without the rest of it, no gap, indexes that agree with their documents, and a next write that works.
//!
//! The writing process is this program with the argument `--writer`. It reports each acknowledged commit on its standard output, and
//! before that each one that it begins.

mod check;
mod writer;

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

pub use writer::write;

use self::check::Acknowledged;
use crate::Broken;

/// What to kill, and how often.
#[derive(Clone, Debug)]
pub struct CrashTrial {
    /// The program that writes when it gets the arguments `--writer FOLDER STORE SEED`.
    pub program: PathBuf,
    /// `redb` or `rocksdb`.
    pub store: String,
    /// How many processes are killed. They write into the same database, one after the other.
    pub kills: u32,
    /// The seed of the moments and of what the writers do.
    pub seed: u64,
}

/// The longest time that a writer lives.
const LONGEST_LIFE: Duration = Duration::from_millis(900);

/// Places in the code, each between two steps of a write, at which the process ends as if it were killed.
const POINTS: [&str; 10] = [
    "after-apply",
    "after-commit",
    "after-compact",
    "after-drop-of-keyspaces",
    "after-publish",
    "before-apply",
    "before-drop-of-keyspace",
    "before-publish",
    "between-rewritten-chunks",
    "in-build-round",
];

/// The greatest number of times that a writer passes a place before it ends there.
const MOST_PASSES: u32 = 40;

/// Kills writers; returns the promises that were broken, at the first kill that shows any. `report` gets a line from time to time.
pub fn run(trial: &CrashTrial, mut report: impl FnMut(String)) -> Broken {
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => return vec![format!("no temporary folder: {error}")],
    };
    let mut random = fastrand::Rng::with_seed(trial.seed);
    let mut acknowledged = Acknowledged::default();
    for kill in 1..=trial.kills {
        let seed = random.u64(..);
        let life = LONGEST_LIFE.mul_f64(random.f64());
        let point = random.bool().then(|| {
            let point = random.choice(POINTS).unwrap_or("before-apply");
            format!("{point}={}*off->return", random.u32(0..MOST_PASSES))
        });
        let lines = match ended(trial, folder.path(), seed, life, point.as_deref()) {
            Ok(lines) => lines,
            Err(error) => return vec![format!("kill {kill}: {error}")],
        };
        lines.iter().for_each(|line| acknowledged.note(line));
        let broken = check::check(&url(&trial.store, folder.path()), folder.path(), &mut acknowledged);
        if !broken.is_empty() {
            let kept = folder.keep();
            let place = format!("the database is kept in {}", kept.display());
            return broken.into_iter().map(|promise| format!("kill {kill}: {promise}")).chain([place]).collect();
        }
        if kill.is_power_of_two() || kill == trial.kills {
            report(format!("{kill} kills, {}", acknowledged.summary()));
        }
    }
    Vec::new()
}

/// The URL of the database in the folder.
fn url(store: &str, folder: &Path) -> String {
    format!("{store}:{}", folder.join("db").display())
}

/// Starts a writer, and kills it after this time, unless it ends at the point before. Returns its lines.
fn ended(
    trial: &CrashTrial,
    folder: &Path,
    seed: u64,
    life: Duration,
    point: Option<&str>,
) -> std::io::Result<Vec<String>> {
    let mut writer = Command::new(&trial.program)
        .env("FAILPOINTS", point.unwrap_or_default())
        .arg("--writer")
        .arg(folder)
        .arg(&trial.store)
        .arg(seed.to_string())
        .stdout(Stdio::piped())
        .spawn()?;
    let Some(output) = writer.stdout.take() else { return Err(std::io::Error::other("the writer has no output")) };
    let reading = thread::spawn(move || {
        // The last line may be cut off.
        BufReader::new(output).lines().map_while(Result::ok).collect::<Vec<String>>()
    });
    thread::sleep(life);
    // A writer that ends at a point has no exit code, as one that was killed.
    if let Some(code) = writer.try_wait()?.and_then(|status| status.code()) {
        return Err(std::io::Error::other(format!("the writer (seed {seed}) ended by itself with {code}")));
    }
    // On Unix this is SIGKILL: nothing of the process runs any more.
    writer.kill()?;
    writer.wait()?;
    reading.join().map_err(|_| std::io::Error::other("reading the output failed"))
}
