//! The database benchmark on Slate's redb store.

use std::process::ExitCode;

use slate_bench::slate::Slate;

fn main() -> ExitCode {
    slate_bench::program::main("slate-bench-redb", |folder, setup| Slate::open("redb", folder, setup))
}
