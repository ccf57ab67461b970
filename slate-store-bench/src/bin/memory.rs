//! The store benchmark on Slate's memory store.

use std::process::ExitCode;

use slate_store_bench::{
    run_all,
    slate::{Memory, SlateDocuments, SlateStore},
};

fn main() -> ExitCode {
    run_all::<SlateStore<Memory>, SlateDocuments<Memory>>()
}
