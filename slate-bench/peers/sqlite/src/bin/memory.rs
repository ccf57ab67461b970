//! The database benchmark on SQLite, in memory, without ANALYZE.

use std::process::ExitCode;

use slate_bench_sqlite::{Place, Sqlite, Statistics};

fn main() -> ExitCode {
    slate_bench::program::main("slate-bench-sqlite-memory", |folder, setup| {
        Sqlite::open(Place::Memory, Statistics::Absent, folder, setup)
    })
}
