//! The database benchmark on SQLite, in a file, after ANALYZE.

use std::process::ExitCode;

use slate_bench_sqlite::{Place, Sqlite, Statistics};

fn main() -> ExitCode {
    slate_bench::program::main("slate-bench-sqlite-file-analyzed", |folder, setup| {
        Sqlite::open(Place::File, Statistics::Analyzed, folder, setup)
    })
}
