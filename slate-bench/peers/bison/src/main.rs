//! The database benchmark on bison-db: one file per user; bison-db holds its indexes in memory.

mod convert;
mod database;
mod convert_query;
mod subject;

use std::process::ExitCode;

fn main() -> ExitCode {
    slate_bench::program::main("slate-bench-bison", |folder, setup| database::Bison::open(folder, setup.users))
}
