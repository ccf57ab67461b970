//! Command-line options of the database benchmark.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use lexopt::ValueExt;
use slate_bench_harness::{Arguments, Known, Parsed, Result, Usage};

/// The parsed command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Options that all benches share.
    pub shared: Arguments,
    /// Records per collection; the workload runs once for each of these sizes.
    pub records: Vec<u64>,
    /// Number of users, with one collection each.
    pub users: usize,
    /// Limit in bytes on the memory of the process. Runs the workload for data larger than memory instead of the usual one.
    pub memory_limit: Option<u64>,
    /// The length of a soak run with data larger than memory, which replaces the measurement of single operations.
    pub soak: Option<Duration>,
    /// File for the course of a soak run.
    pub course: Option<PathBuf>,
    /// Files with the courses of other databases' soak runs, which the chart shows, too.
    pub beside: Vec<PathBuf>,
    /// Size in bytes of the database's cache. `None`: the database's default, or two fifths of the memory limit.
    pub cache: Option<u64>,
    /// The order in which records are inserted.
    pub ids: Ids,
}

/// The order in which records are inserted, by their `_id`s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ids {
    /// Ascending over all batches.
    #[default]
    Ascending,
    /// Ascending in each batch, but each batch has records from the whole range. Strings that end in a growing number without
    /// leading zeros have such an order, for example.
    Interleaved,
}

impl Ids {
    fn parse(name: &str) -> Result<Self> {
        match name {
            "ascending" => Ok(Self::Ascending),
            "interleaved" => Ok(Self::Interleaved),
            _ => Err(format!("{name} is not an order of _ids: ascending or interleaved").into()),
        }
    }

    /// Returns the `_id`s of one of `batches` batches of `size` records.
    pub fn of_batch(self, batch: u64, batches: u64, size: u64) -> Vec<u64> {
        match self {
            Self::Ascending => (size * batch / batches..size * (batch + 1) / batches).collect(),
            Self::Interleaved => (batch..size).step_by(usize::try_from(batches).unwrap_or(usize::MAX)).collect(),
        }
    }
}

/// How to open a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Number of users.
    pub users: usize,
    /// Size in bytes of the database's cache. `None`: its default.
    pub cache: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shared: Arguments::default(),
            records: vec![10_000, 100_000],
            users: 3,
            memory_limit: None,
            soak: None,
            course: None,
            beside: Vec::new(),
            cache: None,
            ids: Ids::default(),
        }
    }
}

/// What the command line requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a program has one of them")]
pub enum Request {
    /// Run the benchmark.
    Run(Options),
    /// Print this text.
    Help(String),
}

/// Minimum number of records per collection. The write rows then change at least ten.
const FEWEST: u64 = 100;

impl Options {
    /// Parses a command line without the program name.
    ///
    /// # Errors
    /// Fails on unknown options and invalid values.
    pub fn parse(program: &str, line: impl IntoIterator<Item = OsString>) -> Result<Request> {
        let usage = Usage {
            program,
            about: "Runs the database workload: loads records, runs queries with known results, writes, and \
                    tells how long each took.",
            options: &[
                ("--records N[,N…]", "records per collection, one set of tables each (10k,100k)"),
                ("--users N", "number of users, one collection each (3)"),
                ("--memory-limit SIZE", "run the workload for data larger than memory in this much memory (300M)"),
                (
                    "--soak SECONDS",
                    "with --memory-limit: eight threads for so long, their latencies and the files over time",
                ),
                ("--course FILE", "write the course of the soak run"),
                ("--beside FILE", "draw this course, too; repeatable"),
                ("--ids ORDER", "insert ascending or interleaved _ids (ascending)"),
                ("--cache SIZE", "size of the database's cache (its default, or 2/5 of the memory limit)"),
            ],
        };
        let mut options = Self::default();
        let parsed = usage.parse(line, |name, parser| {
            match name {
                "records" => options.records = sizes(&parser.value()?.string()?)?,
                "users" => options.users = parser.value()?.parse::<std::num::NonZeroUsize>()?.get(),
                "memory-limit" => options.memory_limit = Some(bytes(&parser.value()?.string()?)?),
                "soak" => options.soak = Some(Duration::from_secs(parser.value()?.parse()?)),
                "course" => options.course = Some(parser.value()?.into()),
                "beside" => options.beside.push(parser.value()?.into()),
                "ids" => options.ids = Ids::parse(&parser.value()?.string()?)?,
                "cache" => options.cache = Some(bytes(&parser.value()?.string()?)?),
                _ => return Ok(Known::No),
            }
            Ok(Known::Yes)
        })?;
        if options.soak.is_some() && options.memory_limit.is_none() {
            return Err("--soak needs --memory-limit".into());
        }
        Ok(match parsed {
            Parsed::Run(shared) => Request::Run(Self { shared, ..options }),
            Parsed::Help(text) => Request::Help(text),
        })
    }
}

impl Options {
    /// Returns the setup of a database for this many users. Without `--cache`, the cache has two fifths of the memory limit,
    /// if there is one.
    pub fn setup(&self, users: usize) -> Setup {
        Setup { users, cache: self.cache.or(self.memory_limit.map(|limit| limit / 5 * 2)) }
    }
}

fn bytes(size: &str) -> Result<u64> {
    Ok(number(size).ok_or_else(|| format!("{size} is not a number of bytes"))?)
}

fn sizes(list: &str) -> Result<Vec<u64>> {
    let size = |size: &str| {
        let number = number(size).ok_or_else(|| format!("{size} is not a number of records"))?;
        if number < FEWEST {
            return Err(format!("a collection has at least {FEWEST} records, not {number}").into());
        }
        Ok(number)
    };
    list.split(',').map(size).collect()
}

/// Parses digits with an optional unit: `1_000`, `10k`, `1M`, `2G`.
fn number(size: &str) -> Option<u64> {
    let digits = size.trim().replace('_', "");
    let (digits, unit) = match digits.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => match digits.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1_000_000),
            None => digits.strip_suffix(['g', 'G']).map_or((&*digits, 1), |digits| (digits, 1_000_000_000)),
        },
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Request> {
        Options::parse("slate-bench", line.iter().map(OsString::from))
    }

    #[test]
    fn sizes_are_a_list() {
        let Request::Run(options) = parse(&["--records", "1000,1_000_000,10k, 2M", "--users=1", "--runs=2"]).unwrap()
        else {
            panic!("no run");
        };
        assert_eq!(
            (options.records, options.users, options.shared.runs),
            (vec![1_000, 1_000_000, 10_000, 2_000_000], 1, 2)
        );
        assert_eq!(parse(&[]).unwrap(), Request::Run(Options::default()));
    }

    #[test]
    fn the_cache_is_a_part_of_the_memory_unless_it_is_set() {
        let cache = |line: &[&str]| match parse(line).unwrap() {
            Request::Run(options) => (options.memory_limit, options.setup(1).cache),
            Request::Help(_) => panic!("no run"),
        };
        assert_eq!(cache(&[]), (None, None));
        assert_eq!(cache(&["--memory-limit", "300M"]), (Some(300_000_000), Some(120_000_000)));
        assert_eq!(cache(&["--memory-limit=1G", "--cache=64k"]), (Some(1_000_000_000), Some(64_000)));
    }

    #[test]
    fn batches_contain_every_id_once_in_either_order() {
        for ids in [Ids::Ascending, Ids::Interleaved] {
            let mut all: Vec<u64> = (0..10).flat_map(|batch| ids.of_batch(batch, 10, 1_003)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..1_003).collect::<Vec<_>>());
        }
        assert_eq!(Ids::Interleaved.of_batch(1, 3, 7), [1, 4]);
    }

    #[test]
    fn invalid_values_are_rejected() {
        assert!(parse(&["--ids", "sorted"]).unwrap_err().to_string().contains("sorted"));
        assert!(parse(&["--records", "many"]).unwrap_err().to_string().contains("many"));
        assert!(parse(&["--records", "k"]).is_err());
        assert!(parse(&["--records", "5"]).unwrap_err().to_string().contains("at least"));
        assert!(parse(&["--users", "0"]).is_err());
        assert!(parse(&["--soak", "5"]).unwrap_err().to_string().contains("memory-limit"));
        assert!(parse(&["--memory-limit", "much"]).unwrap_err().to_string().contains("much"));
    }
}
