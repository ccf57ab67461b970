//! The store benchmark on RocksDB, without Slate above it.

use std::process::ExitCode;

mod subject;

fn main() -> ExitCode {
    slate_store_bench::run_keys_and_values::<subject::RocksDb>()
}
