//! Kills two processes at random times: one that writes into a database, and one that applies its change stream to a copy, where each
//! commit also stores the token of the last event. After each kill the stream is resumed, and the copy must be equal: no event is missed,
//! and none comes twice, which the copy would refuse.
//!
//! On a store that only one process can open, the follower is part of the writing process. The log of some processes is so short that it
//! no longer has the events after a follower's token. Then the stream must fail, and the copy is made again.

mod replica;
mod writer;

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use slate_core::{Database, Result};

pub use self::{replica::follow, writer::write};

use self::replica::{Followed, Replica};
use crate::Broken;

/// What to kill, and how often.
#[derive(Clone, Debug)]
pub struct ChangesTrial {
    /// The program: a writer with the arguments `--changes-writer FOLDER STORE SEED`, a follower with `--changes-follower FOLDER STORE`.
    pub program: PathBuf,
    /// `redb` or `rocksdb`.
    pub store: String,
    /// The number of kills. Each ends all processes.
    pub kills: u32,
    /// The seed of the times of the kills and of what the writers do.
    pub seed: u64,
}

/// Maximum time from the start of a writer to its kill.
const LONGEST_LIFE: Duration = Duration::from_millis(600);

/// How long a process waits for another one that repairs the database.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);

/// The URL of the database that is written.
fn source(store: &str, folder: &Path) -> String {
    format!("{store}:{}", folder.join("source").display())
}

/// The URL of the copy.
fn copy(store: &str, folder: &Path) -> String {
    format!("{store}:{}", folder.join("copy").display())
}

/// Whether another process can read the database beside the one that writes.
fn has_readers(store: &str) -> bool {
    store == "redb"
}

/// Kills writers and followers until a promise is broken; returns the broken promises. `report` receives lines about the progress.
pub fn run(trial: &ChangesTrial, mut report: impl FnMut(String)) -> Broken {
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => return vec![format!("no temporary folder: {error}")],
    };
    let mut random = fastrand::Rng::with_seed(trial.seed);
    let mut counts = Counts::default();
    for kill in 1..=trial.kills {
        let (seed, life) = (random.u64(..), LONGEST_LIFE.mul_f64(random.f64()));
        let broken = match killed(trial, folder.path(), seed, life) {
            Ok(()) => caught_up(&trial.store, folder.path(), &mut counts)
                .unwrap_or_else(|error| vec![format!("after the kill: {error:?}")]),
            Err(error) => vec![error.to_string()],
        };
        if !broken.is_empty() {
            let kept = folder.keep();
            let place = format!("the databases are kept in {}", kept.display());
            return broken.into_iter().map(|promise| format!("kill {kill}: {promise}")).chain([place]).collect();
        }
        if kill.is_power_of_two() || kill == trial.kills {
            report(format!("{kill} kills, {counts}"));
        }
    }
    match counts.before + counts.after {
        0 if trial.kills > 0 => vec!["nothing was tried: no event was followed".into()],
        _ => Vec::new(),
    }
}

#[derive(Debug, Default)]
struct Counts {
    before: u64,
    after: u64,
    behind: u64,
    documents: u64,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { before, after, behind, documents } = self;
        write!(
            f,
            "{before} events followed before kills and {after} after them, {behind} followers behind the log, {documents} documents compared"
        )
    }
}

/// Starts the processes, and kills them `life` after the writer has begun. Fails if one ended by itself.
fn killed(trial: &ChangesTrial, folder: &Path, seed: u64, life: Duration) -> std::io::Result<()> {
    let start = |role: &str, seed: Option<u64>| {
        let mut command = Command::new(&trial.program);
        command.arg(role).arg(folder).arg(&trial.store).args(seed.map(|seed| seed.to_string()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
    };
    let mut processes = vec![("the writer", start("--changes-writer", Some(seed))?)];
    if has_readers(&trial.store) {
        processes.push(("the follower", start("--changes-follower", None)?));
    }
    // The writer prints a line when it begins; the end of its output means that it has ended.
    if let Some(output) = processes.first_mut().and_then(|(_, writer)| writer.stdout.take()) {
        BufReader::new(output).read_line(&mut String::new())?;
    }
    thread::sleep(life);
    let (mut random, mut ended) = (fastrand::Rng::with_seed(seed), Ok(()));
    random.shuffle(&mut processes);
    for (name, process) in &mut processes {
        if let Err(error) = end(process) {
            ended = Err(std::io::Error::other(format!("{name} (seed {seed}): {error}")));
        }
    }
    ended
}

/// Kills a process, on Unix with SIGKILL. Fails if it has ended by itself with an exit code.
fn end(process: &mut Child) -> std::io::Result<()> {
    let code = process.try_wait()?.and_then(|status| status.code());
    process.kill()?;
    process.wait()?;
    code.map_or(Ok(()), |code| Err(std::io::Error::other(format!("ended by itself with {code}"))))
}

/// Resumes the stream up to the end of the log, or copies everything again if the log is too short. Returns the differences between the
/// copy and the database.
fn caught_up(store: &str, folder: &Path, counts: &mut Counts) -> Result<Broken> {
    let db = Database::open(&source(store, folder))?;
    db.enable_changes(slate_core::ChangeLog::new())?;
    let mut replica = Replica::open(&copy(store, folder))?;
    let before = replica.events;
    counts.before = before.saturating_sub(counts.after);
    match replica.follow(&db, Duration::ZERO)? {
        Followed::Everything => counts.after += replica.events - before,
        Followed::Behind => {
            counts.behind += 1;
            replica.copy_again(&db)?;
        }
        Followed::Differs(event) => return Ok(vec![format!("the copy does not take the event {event}")]),
    }
    let mut broken = replica.compare(&db, &mut counts.documents)?;
    let report = db.verify().run()?;
    if !report.is_sound() {
        broken.push(format!("indexes and documents do not agree: {report:?}"));
    }
    Ok(broken)
}
