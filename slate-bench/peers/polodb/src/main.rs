//! The database benchmark on PoloDB: a collection per user, on a RocksDB of its own.

mod convert;
mod database;
mod question;
mod subject;

use std::process::ExitCode;

fn main() -> ExitCode {
    slate_bench::program::main("slate-bench-polodb", database::Polo::open)
}
