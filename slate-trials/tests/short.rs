//! Each trial for some seconds.

use std::path::PathBuf;

use slate_trials::{
    crash::{self, CrashTrial},
    isolation::{self, IsolationTrial},
};

/// The stores that this build has, with files.
const STORES: &[&str] = if cfg!(feature = "rocksdb") { &["redb", "rocksdb"] } else { &["redb"] };

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_there_in_part_after_kills() {
    for store in STORES {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_slate-trials"));
        let trial = CrashTrial { program, store: (*store).into(), kills: 25, seed: 7 };
        assert_eq!(crash::run(&trial, |line| println!("{store}: {line}")), [""; 0]);
    }
}

#[test]
fn concurrent_transactions_are_isolated() {
    for store in STORES.iter().chain(&["memory"]) {
        let trial = IsolationTrial { store: (*store).into(), histories: 12, seed: 7 };
        assert_eq!(isolation::run(&trial, |line| println!("{store}: {line}")), [""; 0]);
    }
}
