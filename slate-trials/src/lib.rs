//! Trials of what `docs/reliability.md` promises. Each prints its seed, what it did and what it found, and fails if a promise was
//! broken. `cargo test` runs them for seconds; the program `slate-trials` runs them for as long as wanted:
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

/// What a trial found that must not be: a sentence for each broken promise.
pub type Broken = Vec<String>;
