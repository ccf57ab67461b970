//! The database benchmark on PoloDB: one collection per user.

mod convert;
mod database;
mod convert_query;
mod subject;

use std::process::ExitCode;

fn main() -> ExitCode {
    slate_bench::program::main("slate-bench-polodb", |folder, setup| database::Polo::open(folder, setup.users))
}
