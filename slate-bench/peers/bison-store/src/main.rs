//! The document tables of the store benchmark on bison-db.

use std::process::ExitCode;

mod subject;

fn main() -> ExitCode {
    slate_store_bench::run_documents::<subject::Bison>()
}
