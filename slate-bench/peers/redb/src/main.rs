//! The store benchmark on bare redb.

use std::process::ExitCode;

mod subject;

fn main() -> ExitCode {
    slate_store_bench::run_keys_and_values::<subject::Redb>()
}
