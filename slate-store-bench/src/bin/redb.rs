//! The store benchmark on Slate's redb store.

use std::process::ExitCode;

use slate_store_bench::{
    run_all,
    slate::{Redb, SlateDocuments, SlateStore},
};

fn main() -> ExitCode {
    run_all::<SlateStore<Redb>, SlateDocuments<Redb>>()
}
