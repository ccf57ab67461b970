//! The store benchmark of the store in memory.

use std::process::ExitCode;

use slate_store_bench::{
    run_all,
    slate::{Memory, SlateDocuments, SlateStore},
};

fn main() -> ExitCode {
    run_all::<SlateStore<Memory>, SlateDocuments<Memory>>()
}
