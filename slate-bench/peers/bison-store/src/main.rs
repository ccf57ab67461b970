//! The documents of the store benchmark on bison-db: its own tables.

use std::process::ExitCode;

mod subject;

fn main() -> ExitCode {
    slate_store_bench::run_documents::<subject::Bison>()
}
