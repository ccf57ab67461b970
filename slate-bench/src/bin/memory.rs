//! The database benchmark on Slate's memory store.

use std::process::ExitCode;

use slate_bench::slate::Slate;

fn main() -> ExitCode {
    slate_bench::program::main("slate-bench-memory", |folder, setup| Slate::open("memory", folder, setup))
}
