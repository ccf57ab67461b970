//! Parses the command line.

use std::path::PathBuf;

use lexopt::{Arg, Parser};

use super::bench::Backend;

pub(crate) const USAGE: &str = "\
Runs semantic cases against Slate.

usage: oracle [--backend memory|redb|rocksdb|btree|tikv|all] [--indexed] FILE…

  FILE       cases, a JSON object a line, plain or compressed by gzip
  --backend  the store to run on (default: memory); rocksdb takes a build with that feature, and then all includes it;
             tikv takes one too, and a cluster whose placement driver SLATE_TIKV names
  --indexed  run each case with indexes on the paths that it names, each forced in turn

Ends with a line `passed P failed F unsupported U`; exit code 1 where a case failed, 2 where the call is wrong.";

#[derive(Debug)]
pub(crate) struct Arguments {
    pub(crate) backends: Vec<Backend>,
    pub(crate) indexes: Indexes,
    pub(crate) files: Vec<PathBuf>,
}

/// Which indexes to run the cases with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexes {
    TheirOwn,
    Forced,
}

/// Parses the command line. Returns `None` if help is requested.
pub(crate) fn parse() -> Result<Option<Arguments>, lexopt::Error> {
    let mut arguments = Arguments { backends: vec![Backend::Memory], indexes: Indexes::TheirOwn, files: Vec::new() };
    let mut parser = Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Arg::Long("backend") => {
                let value = parser.value()?;
                arguments.backends = match value.to_str() {
                    Some("all") => Backend::ALL.to_vec(),
                    name => match name.and_then(Backend::named) {
                        Some(backend) => vec![backend],
                        None => return Err(no_such_backend()),
                    },
                }
            }
            Arg::Long("indexed") => arguments.indexes = Indexes::Forced,
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            Arg::Value(file) => arguments.files.push(file.into()),
            Arg::Short(_) | Arg::Long(_) => return Err(argument.unexpected()),
        }
    }
    if arguments.files.is_empty() {
        return Err("no case file given".into());
    }
    Ok(Some(arguments))
}

fn no_such_backend() -> lexopt::Error {
    let names: Vec<&str> = Backend::ALL.iter().map(|backend| backend.name()).collect();
    format!("unknown backend; this build has {} and all", names.join(", ")).into()
}
