//! The database benchmark on Slate's RocksDB store.

use std::process::ExitCode;

use slate_bench::slate::Slate;

fn main() -> ExitCode {
    slate_bench::program::main("slate-bench-rocksdb", |folder, setup| Slate::open("rocksdb", folder, setup))
}
