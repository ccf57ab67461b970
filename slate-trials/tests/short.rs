//! Each trial for some seconds.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::{fs, path::PathBuf};

use slate_trials::{
    changes::{self, ChangesTrial},
    crash::{self, CrashTrial},
    fuzz::{self, Target, Verdict},
    isolation::{self, IsolationTrial},
    simulation::{self, Sabotage, SimulationTrial},
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

#[cfg(all(unix, feature = "rocksdb"))]
#[test]
fn rocksdb_keeps_what_was_synced_when_the_power_is_cut() {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_slate-trials"));
    let trial = crash::PowerTrial { program, cuts: 10, seed: 7 };
    assert_eq!(crash::cut(&trial, |line| println!("{line}")).unwrap(), [""; 0]);
}

#[cfg(all(unix, feature = "rocksdb"))]
#[test]
fn rocksdb_writes_again_when_a_full_device_has_room() {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_slate-trials"));
    assert_eq!(crash::fill(&crash::FullDeviceTrial { program, rounds: 2 }).unwrap(), [""; 0]);
}

#[test]
fn a_copy_that_follows_a_stream_is_equal_after_kills() {
    for store in STORES {
        let program = PathBuf::from(env!("CARGO_BIN_EXE_slate-trials"));
        let trial = ChangesTrial { program, store: (*store).into(), kills: 5, seed: 7 };
        assert_eq!(changes::run(&trial, |line| println!("{store}: {line}")), [""; 0]);
    }
}

#[test]
fn concurrent_transactions_are_isolated() {
    for store in STORES.iter().chain(&["memory"]) {
        let trial = IsolationTrial { store: (*store).into(), histories: 12, seed: 7 };
        assert_eq!(isolation::run(&trial, |line| println!("{store}: {line}")), [""; 0]);
    }
}

/// Runs each target with random inputs, with those in `fuzz/corpus`, and with these with some bytes changed. Each must accept a
/// share of the random inputs, because a target that refuses almost everything tests nothing.
#[test]
fn no_bytes_and_no_document_panic() {
    let number = |variable: &str| std::env::var(variable).ok().and_then(|number| number.parse::<u64>().ok());
    let mut random = fastrand::Rng::with_seed(number("SLATE_SEED").unwrap_or(7));
    for Target { name, call, accepted } in fuzz::TARGETS {
        let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(name);
        let mut known: Vec<PathBuf> = fs::read_dir(corpus).unwrap().map(|input| input.unwrap().path()).collect();
        known.sort();
        let (mut of_corpus, mut of_random) = (0, 0);
        for input in &known {
            let mut data = fs::read(input).unwrap();
            of_corpus += usize::from(call(&data) == Verdict::Accepted);
            let at = random.usize(..data.len());
            data[at] = random.u8(..);
            call(&data);
        }
        let few = if matches!(name, "backup" | "catalog") { 60 } else { 300 };
        let inputs = number("SLATE_CASES").and_then(|cases| usize::try_from(cases).ok()).unwrap_or(few);
        for _ in 0..inputs {
            let data: Vec<u8> = (0..random.usize(..200)).map(|_| random.u8(..)).collect();
            of_random += usize::from(call(&data) == Verdict::Accepted);
        }
        println!(
            "{name}: {of_random} of {inputs} random inputs and {of_corpus} of {} in the corpus accepted",
            known.len()
        );
        assert!(of_random * 100 >= accepted * inputs, "{name} accepts {of_random} of {inputs} random inputs");
        assert!(
            of_corpus * 2 >= known.len() && of_corpus > 0,
            "{name} accepts {of_corpus} of {} of its corpus",
            known.len()
        );
    }
}

#[test]
fn libfuzzer_has_every_target() {
    let fuzz = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let names = |folder: &str| -> Vec<String> {
        let entries = fs::read_dir(fuzz.join(folder)).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<String> = entries.map(|path| path.file_stem().unwrap().to_str().unwrap().into()).collect();
        names.sort();
        names
    };
    let known = fuzz::TARGETS.map(|target| target.name);
    assert_eq!(names("fuzz_targets"), known);
    assert_eq!(names("corpus"), known);
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for name in known {
        let bin = format!("[[bin]]\nname = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n");
        assert!(manifest.contains(&bin), "{name} is no program of fuzz/Cargo.toml");
        let call = fs::read_to_string(fuzz.join("fuzz_targets").join(name).with_extension("rs")).unwrap();
        assert!(call.contains(&format!("fuzz::run(\"{name}\", data)")), "{name} calls another target");
    }
}

#[test]
fn no_interleaving_of_commits_breaks_a_promise() {
    let trial = SimulationTrial { schedules: 300, seed: 1, sabotage: Sabotage::None };
    let broken = simulation::run(&trial, |line| println!("{line}"));
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn the_simulation_finds_a_device_that_breaks_its_contract() {
    for sabotage in [Sabotage::EarlyFlush, Sabotage::LostWrite, Sabotage::LostSync, Sabotage::TornCommit] {
        let trial = SimulationTrial { schedules: 300, seed: 1, sabotage };
        assert_eq!(simulation::run(&trial, |_| ()).len(), 1, "{sabotage:?}");
    }
}
