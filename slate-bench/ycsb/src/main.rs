//! Drives YCSB's workloads A to F against any server of MongoDB's protocol, through the official driver, and measures single finds
//! against an echo server. See README.md.

mod echo;
mod keys;
mod measure;
mod raw_find;
mod workload;

use std::time::Duration;

use lexopt::{Arg, Parser, ValueExt};

/// An error of any kind: the program reports it and ends.
type Error = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage:
  ycsb run --uri URI… [--workloads ABCDEF] [--records N] [--connections 1,8,64] [--seconds N] [--name NAME]
  ycsb echo-server --listen ADDRESS --reply BYTES      answers each message with one of BYTES bytes
  ycsb raw --address ADDRESS [--connections N] [--seconds N] [--name NAME]
                                                       sends the same find by _id over bare sockets, to a server that holds
                                                       the records of `run` or to the echo server
With several servers of one database (--uri for each) the connections are divided between them; the first one loads.
Prints one line of JSON for each measurement.";

#[tokio::main]
async fn main() -> std::process::ExitCode {
    match execute(Parser::from_env()).await {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ycsb: {error}\n{USAGE}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// The arguments, of which each command uses some.
#[derive(Debug)]
struct Arguments {
    uris: Vec<String>,
    address: Option<String>,
    name: String,
    workloads: String,
    records: u64,
    connections: Vec<u32>,
    duration: Duration,
    reply: usize,
}

async fn execute(mut parser: Parser) -> Result<(), Error> {
    let mut command = None;
    let mut arguments = Arguments {
        uris: Vec::new(),
        address: None,
        name: "server".into(),
        workloads: "ABCDEF".into(),
        records: 100_000,
        connections: vec![1, 8, 64],
        duration: Duration::from_secs(10),
        reply: 1200,
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Value(value) if command.is_none() => command = Some(value.string()?),
            Arg::Long("uri") => arguments.uris.push(parser.value()?.string()?),
            Arg::Long("address" | "listen") => arguments.address = Some(parser.value()?.string()?),
            Arg::Long("name") => arguments.name = parser.value()?.string()?,
            Arg::Long("workloads") => arguments.workloads = parser.value()?.string()?,
            Arg::Long("records") => arguments.records = parser.value()?.parse()?,
            Arg::Long("seconds") => arguments.duration = Duration::from_secs_f64(parser.value()?.parse()?),
            Arg::Long("reply") => arguments.reply = parser.value()?.parse()?,
            Arg::Long("connections") => {
                let list = parser.value()?.string()?;
                arguments.connections = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    match command.as_deref() {
        Some("run") => workload::run(&arguments).await,
        Some("echo-server") => echo::serve(&arguments).await,
        Some("raw") => raw_find::run(&arguments).await,
        _ => Err("a command is missing".into()),
    }
}
