//! The workloads, one file per table.

use slate_bench_harness::Result;

use crate::{Subject, bench::Bench};

mod byodb;
mod lsm;
mod pinned;
mod raw;
pub(crate) mod tools;
mod txn;

/// Measures the key-value tables. A table whose setup fails is reported, and the next one is measured.
pub(crate) fn run<S: Subject>(bench: &mut Bench) {
    let sections: [fn(&mut Bench) -> Result<()>; 5] =
        [raw::run::<S>, lsm::run::<S>, txn::run::<S>, byodb::run::<S>, pinned::run::<S>];
    for section in sections {
        if let Err(error) = section(bench) {
            bench.failed("rest of the section", &error);
        }
    }
}
