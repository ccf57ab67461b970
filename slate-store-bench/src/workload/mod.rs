//! The tables, one file each.

use slate_bench_harness::Result;

use crate::{Subject, bench::Bench};

mod byodb;
mod lsm;
mod pinned;
mod raw;
pub(crate) mod tools;
mod txn;

/// Measures keys and values, section by section. One that cannot be set up is reported, and the others are measured.
pub(crate) fn run<S: Subject>(bench: &mut Bench) {
    let sections: [fn(&mut Bench) -> Result<()>; 5] =
        [raw::run::<S>, lsm::run::<S>, txn::run::<S>, byodb::run::<S>, pinned::run::<S>];
    for section in sections {
        if let Err(error) = section(bench) {
            bench.failed("the rest of the section", &error);
        }
    }
}
