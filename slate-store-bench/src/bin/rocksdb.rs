//! The store benchmark on Slate's RocksDB store.

use std::process::ExitCode;

use slate_store_bench::{
    run_all,
    slate::{RocksDb, SlateDocuments, SlateStore},
};

fn main() -> ExitCode {
    run_all::<SlateStore<RocksDb>, SlateDocuments<RocksDb>>()
}
