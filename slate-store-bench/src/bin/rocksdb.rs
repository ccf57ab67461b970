//! The store benchmark of the store on RocksDB.

use std::process::ExitCode;

use slate_store_bench::{
    run_all,
    slate::{RocksDb, SlateDocuments, SlateStore},
};

fn main() -> ExitCode {
    run_all::<SlateStore<RocksDb>, SlateDocuments<RocksDb>>()
}
