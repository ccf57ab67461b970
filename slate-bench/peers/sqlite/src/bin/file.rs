//! The database benchmark on SQLite, in a file, without ANALYZE.

use std::process::ExitCode;

use slate_bench_sqlite::{Place, Sqlite, Statistics};

fn main() -> ExitCode {
    slate_bench::program::main("slate-bench-sqlite-file", |folder, setup| {
        Sqlite::open(Place::File, Statistics::Absent, folder, setup)
    })
}
