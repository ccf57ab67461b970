//! What the database benchmark is told.

use std::ffi::OsString;

use lexopt::ValueExt;
use slate_bench_harness::{Arguments, Known, Parsed, Result, Usage};

/// The command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What all benches are told.
    pub shared: Arguments,
    /// How many records each collection holds, one run of the whole workload each.
    pub records: Vec<u64>,
    /// How many users there are, with a collection each.
    pub users: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { shared: Arguments::default(), records: vec![10_000, 100_000], users: 3 }
    }
}

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A run.
    Run(Options),
    /// This text.
    Help(String),
}

/// Fewer records could not hold what the writes change.
const FEWEST: u64 = 100;

impl Options {
    /// Reads a command line, without the program's name.
    ///
    /// # Errors
    /// An option that is not known, or a value that is none.
    pub fn parse(program: &str, line: impl IntoIterator<Item = OsString>) -> Result<Asked> {
        let usage = Usage {
            program,
            about: "Runs the database workload: loads records, asks questions whose answers are known, writes, and \
                    tells how long each took.",
            options: &[
                ("--records N[,N…]", "records per collection, one table each (10000,100000)"),
                ("--users N", "users, with a collection each (3)"),
            ],
        };
        let mut options = Self::default();
        let parsed = usage.parse(line, |name, parser| {
            match name {
                "records" => options.records = sizes(&parser.value()?.string()?)?,
                "users" => options.users = parser.value()?.parse::<std::num::NonZeroUsize>()?.get(),
                _ => return Ok(Known::No),
            }
            Ok(Known::Yes)
        })?;
        Ok(match parsed {
            Parsed::Run(shared) => Asked::Run(Self { shared, ..options }),
            Parsed::Help(text) => Asked::Help(text),
        })
    }
}

fn sizes(list: &str) -> Result<Vec<u64>> {
    let size = |size: &str| {
        let number: u64 =
            size.trim().replace('_', "").parse().map_err(|_| format!("{size} is no number of records"))?;
        if number < FEWEST {
            return Err(format!("a collection has at least {FEWEST} records, not {number}").into());
        }
        Ok(number)
    };
    list.split(',').map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Asked> {
        Options::parse("slate-bench", line.iter().map(OsString::from))
    }

    #[test]
    fn sizes_are_a_list() {
        let Asked::Run(options) = parse(&["--records", "1000,1_000_000", "--users=1", "--runs=2"]).unwrap() else {
            panic!("no run");
        };
        assert_eq!((options.records, options.users, options.shared.runs), (vec![1_000, 1_000_000], 1, 2));
        assert_eq!(parse(&[]).unwrap(), Asked::Run(Options::default()));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(parse(&["--records", "many"]).unwrap_err().to_string().contains("many"));
        assert!(parse(&["--records", "5"]).unwrap_err().to_string().contains("at least"));
        assert!(parse(&["--users", "0"]).is_err());
    }
}
