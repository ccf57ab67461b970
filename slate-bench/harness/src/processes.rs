//! Measures a database that several processes use at the same time: a program starts copies of itself.
//!
//! ```text
//! program --cluster …          prepares the data, then for each number of processes:
//!   ├─ program --worker 0      reads the number of an operation from its input, repeats the operation
//!   ├─ program --worker 1      for some seconds, and prints what it has measured, as JSON
//!   └─ …
//! ```
//!
//! All workers do the same operation at the same time.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use lexopt::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Align, Failure, Result, Rng, Samples, Table, error, format, number};

/// A connection of one process with the database.
pub trait Client {
    /// The names of the measured operations, in order. A name states how much one execution does.
    const OPERATIONS: &'static [&'static str];

    /// Creates the database with `records` records.
    ///
    /// # Errors
    /// Any error of the database.
    fn prepare(&self, records: u64) -> Result<()>;

    /// Executes an operation once, on a database that was prepared with `records` records. `rng` differs between processes.
    ///
    /// # Errors
    /// Any error of the database.
    fn execute(&mut self, operation: usize, records: u64, rng: &mut Rng) -> Result<()>;

    /// Returns the client's counters since it was opened.
    fn counts(&self) -> Counts;
}

/// Counters of operations.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// The round trips to the cluster.
    pub round_trips: u64,
    /// The requests of these round trips, of which each can have several.
    pub requests: u64,
    /// The number of retries after conflicts.
    pub retries: u64,
}

impl Counts {
    fn combine(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            round_trips: combine(self.round_trips, other.round_trips),
            requests: combine(self.requests, other.requests),
            retries: combine(self.retries, other.retries),
        }
    }
}

/// Splits the numbers below `records` into ranges of at most `most`, for one insert each.
pub fn batches(records: u64, most: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    (0..records.div_ceil(most)).map(move |batch| batch * most..records.min((batch + 1) * most))
}

/// Returns a random number above those of the prepared records. That two processes draw the same one is improbable.
pub fn unused(records: u64, rng: &mut Rng) -> u64 {
    records + rng.below(1 << 52)
}

/// The parsed command line.
#[derive(Clone, Debug)]
struct Options {
    /// The placement driver of the cluster.
    cluster: String,
    /// The numbers of processes, which are measured one after the other.
    processes: Vec<usize>,
    seconds: u64,
    records: u64,
    /// The database, and the number of this process, if it is a worker.
    worker: Option<(String, u64)>,
}

/// The measurements of one operation, of one process or of all.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Measured {
    times: Samples,
    counts: Counts,
    seconds: f64,
}

/// Parses the command line, measures, and prints a table. `open` opens a database by its URL.
pub fn main<C: Client>(program: &str, open: impl Fn(&str) -> Result<C>) -> ExitCode {
    let run = || match Options::parse(std::env::args_os().skip(1))? {
        None => {
            print!("{}", help(program));
            Ok(())
        }
        Some(options) => match &options.worker {
            Some((url, number)) => work(&mut open(url)?, &options, *number),
            None => measure(&options, open),
        },
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{program}: {}", error::chain(&error));
            ExitCode::FAILURE
        }
    }
}

fn help(program: &str) -> String {
    format!(
        "{program} --cluster HOST:PORT [--processes N,N,…] [--seconds N] [--records N]\n\n\
         Measures several processes at once on a new database of the cluster with that placement driver.\n\n\
         --processes  the numbers of processes (1,2,4,8)\n\
         --seconds    how long each operation is repeated (5)\n\
         --records    the records of the database (10000)\n"
    )
}

impl Options {
    /// Returns `None` for `--help`.
    fn parse(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Option<Self>> {
        let mut options =
            Self { cluster: String::new(), processes: vec![1, 2, 4, 8], seconds: 5, records: 10_000, worker: None };
        let mut parser = lexopt::Parser::from_args(arguments);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("cluster") => options.cluster = parser.value()?.string()?,
                Long("processes") => {
                    let list = parser.value()?.string()?;
                    options.processes = list.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
                }
                Long("seconds") => options.seconds = parser.value()?.parse()?,
                Long("records") => options.records = parser.value()?.parse()?,
                Long("worker") => {
                    let number = parser.value()?.parse()?;
                    options.worker = Some((parser.value()?.string()?, number));
                }
                Long("help") | Short('h') => return Ok(None),
                other => return Err(other.unexpected().into()),
            }
        }
        if options.cluster.is_empty() && options.worker.is_none() {
            return Err("--cluster HOST:PORT names the cluster".into());
        }
        if options.records == 0 || options.processes.contains(&0) {
            return Err("at least one record and one process".into());
        }
        Ok(Some(options))
    }
}

fn measure<C: Client>(options: &Options, open: impl Fn(&str) -> Result<C>) -> Result<()> {
    let url = format!("tikv://{}/bench-{}", options.cluster, std::process::id());
    open(&url)?.prepare(options.records)?;
    let mut table = Table::new(&[
        ("operation", Align::Left),
        ("processes", Align::Right),
        ("per second", Align::Right),
        ("median", Align::Right),
        ("95 %", Align::Right),
        ("round trips", Align::Right),
        ("requests", Align::Right),
        ("retries", Align::Right),
    ]);
    for (operation, name) in C::OPERATIONS.iter().enumerate() {
        for &processes in &options.processes {
            let mut workers = Vec::with_capacity(processes);
            for number in 0..processes {
                workers.push(Worker::start(&url, options, number)?);
            }
            workers.iter_mut().try_for_each(|worker| worker.begin(operation))?;
            let mut all = Measured::default();
            let mut per_second = 0.0;
            for worker in &mut workers {
                let measured = worker.end()?;
                per_second += number::ratio(number::float(number::count(measured.times.len())), measured.seconds);
                all.times.extend(&measured.times);
                all.counts = all.counts.combine(measured.counts, u64::saturating_add);
            }
            let each = |of: u64| number::ratio(number::float(of), number::float(number::count(all.times.len())));
            table.row([
                (*name).to_owned(),
                processes.to_string(),
                format::count(number::rounded(per_second)),
                format::duration(all.times.median()),
                format::duration(all.times.p95()),
                format!("{:.1}", each(all.counts.round_trips)),
                format!("{:.1}", each(all.counts.requests)),
                format!("{:.4}", each(all.counts.retries)),
            ]);
        }
    }
    print!("{table}");
    Ok(())
}

/// A child process that runs this program. It is killed when the value is dropped.
struct Worker {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts a worker, and waits until it has opened the database.
    fn start(url: &str, options: &Options, number: usize) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args(["--worker", &number.to_string(), url])
            .args(["--seconds", &options.seconds.to_string(), "--records", &options.records.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a process without input and output".into());
        };
        let mut worker = Self { process, input, output: BufReader::new(output) };
        worker.line()?;
        Ok(worker)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("a process has ended early".into());
        }
        Ok(line)
    }

    fn begin(&mut self, operation: usize) -> Result<()> {
        Ok(writeln!(self.input, "{operation}")?)
    }

    fn end(&mut self) -> Result<Measured> {
        Ok(serde_json::from_str(&self.line()?)?)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Fails if the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Executes the operations whose numbers standard input has, until its end.
fn work<C: Client>(client: &mut C, options: &Options, number: u64) -> Result<()> {
    let seed = u64::from(std::process::id());
    // The first call of a process reads the catalog.
    client.execute(0, options.records, &mut Rng::of(seed, &[number]))?;
    println!("ready");
    for line in std::io::stdin().lines() {
        let operation: usize = line?.trim().parse()?;
        if operation >= C::OPERATIONS.len() {
            return Err(Failure::from("an unknown operation"));
        }
        let measured = repeat(client, operation, options, &mut Rng::of(seed, &[number, number::count(operation)]))?;
        println!("{}", serde_json::to_string(&measured)?);
    }
    Ok(())
}

fn repeat<C: Client>(client: &mut C, operation: usize, options: &Options, rng: &mut Rng) -> Result<Measured> {
    let (start, before) = (Instant::now(), client.counts());
    let mut times = Samples::default();
    while start.elapsed() < Duration::from_secs(options.seconds) {
        let begun = Instant::now();
        client.execute(operation, options.records, rng)?;
        times.push(begun.elapsed());
    }
    let (seconds, counts) = (start.elapsed().as_secs_f64(), client.counts().combine(before, u64::saturating_sub));
    Ok(Measured { times, counts, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_every_record_once() {
        assert_eq!(batches(7, 3).collect::<Vec<_>>(), [0..3, 3..6, 6..7]);
        assert_eq!(batches(6, 3).collect::<Vec<_>>(), [0..3, 3..6]);
    }

    #[test]
    fn the_command_line_names_a_cluster_and_how_long_to_measure() {
        let parse = |line: &str| Options::parse(line.split_whitespace().map(Into::into));
        let options = parse("--cluster pd:2379 --processes 1,3 --seconds 2 --records 7").unwrap().unwrap();
        assert_eq!((&*options.cluster, &*options.processes), ("pd:2379", &[1, 3][..]));
        assert_eq!((options.seconds, options.records), (2, 7));
        let worker = parse("--worker 4 tikv://pd/x").unwrap().unwrap();
        assert_eq!(worker.worker, Some(("tikv://pd/x".to_owned(), 4)));
        assert!(parse("--help").unwrap().is_none());
        for wrong in ["", "--cluster pd --processes 0", "--cluster pd --records 0", "--cluster pd --other"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
