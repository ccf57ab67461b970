//! Trials of the promises of `docs/reliability.md`. Each prints its seed and its counts, and fails if a promise was broken.
//! `cargo test` runs them for seconds; the program `slate-trials` runs them for longer:
//!
//! ```text
//! cargo run --release -p slate-trials -- crashes --store redb --kills 1000
//! cargo run --release -p slate-trials --features rocksdb -- power --cuts 1000
//! cargo run --release -p slate-trials -- changes --store redb --kills 200
//! cargo run --release -p slate-trials -- isolation --store memory --histories 1000
//! cargo run --release -p slate-trials -- simulation --schedules 1000000
//! cargo +nightly fuzz run filter -- -max_total_time=600
//! ```

pub mod changes;
pub mod crash;
pub mod fuzz;
pub mod isolation;
pub mod simulation;

/// The result of a trial: a sentence for each broken promise.
pub type Broken = Vec<String>;
