//! The database benchmark on bison-db: a file per user, whose index and secondary indexes it holds in memory.

mod convert;
mod database;
mod question;
mod subject;

use std::process::ExitCode;

fn main() -> ExitCode {
    slate_bench::program::main("slate-bench-bison", database::Bison::open)
}
