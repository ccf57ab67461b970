//! Runs random transactions at the same time and checks their results in the manner of Elle (Kingsbury and Alvaro, VLDB 2020).
//!
//! Transactions append unique numbers to lists and read lists. A read list shows the order of all earlier appends to it, so the results determine
//! which transaction depends on which:
//!
//! | edge | from, to |
//! |---|---|
//! | write, write | from an append to the next one to the same list |
//! | write, read | from an append to the transaction that has read the list with it as the last element |
//! | read, write | from a read of a list to the first append that it does not contain |
//! | real time | from a transaction to each one that began after its commit was acknowledged |
//!
//! A serializable history has no cycle. With snapshot isolation, each cycle has two read-write edges one after the other. Reads by a
//! predicate (all lists of a group, of the other groups, from a key on) read each list that it selects. Some appends delete the list's document and
//! insert it again. A second trial moves amounts between accounts; each snapshot has their sum. Half of the histories wait for the
//! device with each commit, so that commits share syncs.

mod graph;
mod history;

use std::time::Duration;

use slate_core::{Database, Durability, Isolation, Result};

use self::history::{Executed, Plan};
use crate::Broken;

/// What to run.
#[derive(Clone, Debug)]
pub struct IsolationTrial {
    /// `memory`, `redb` or `rocksdb`, or the placement driver of a cluster: `tikv://HOST:PORT`.
    pub store: String,
    /// Number of histories. Each is a database of its own.
    pub histories: u32,
    /// The seed of what the transactions do. Their order depends on the machine.
    pub seed: u64,
}

/// Runs histories until one breaks a promise; returns the broken promises. `report` receives lines about the progress.
pub fn run(trial: &IsolationTrial, mut report: impl FnMut(String)) -> Broken {
    let mut random = fastrand::Rng::with_seed(trial.seed);
    let (mut transactions, mut conflicts, mut unknown, mut skews, mut snapshots) = (0, 0, 0, 0, 0);
    let mut longest_stall = Duration::ZERO;
    for number in 1..=trial.histories {
        let plan = Plan {
            isolation: if random.bool() { Isolation::Serializable } else { Isolation::Snapshot },
            is_async: random.bool(),
            is_indexed: random.bool(),
            durability: if random.bool() { Durability::Sync } else { Durability::Deferred },
            seed: random.u64(..),
        };
        let executed = match execute(&trial.store, &plan) {
            Ok(executed) => executed,
            Err(error) => return vec![format!("history {number}, {plan:?}: {error:?}")],
        };
        transactions += executed.committed.len();
        conflicts += executed.conflicts;
        unknown += executed.unknown.len();
        longest_stall = longest_stall.max(executed.longest_stall);
        let broken: Broken = executed.broken.iter().cloned().chain(graph::check(&executed, plan.isolation)).collect();
        if !broken.is_empty() {
            return broken
                .into_iter()
                .take(5)
                .map(|promise| format!("history {number}, {plan:?}: {promise}"))
                .collect();
        }
        if plan.isolation == Isolation::Snapshot {
            snapshots += 1;
            skews += usize::from(!graph::check(&executed, Isolation::Serializable).is_empty());
        }
        if number.is_power_of_two() || number == trial.histories {
            report(format!(
                "{number} histories, {transactions} commits, {conflicts} conflicts, {unknown} unknown outcomes, at most {longest_stall:.1?} without a commit, {skews} histories with write skew under snapshot isolation"
            ));
        }
    }
    // Snapshot isolation allows write skew. If the check never finds any there, it would miss it in a serializable history, too.
    if snapshots >= ENOUGH_SNAPSHOTS && skews == 0 {
        return vec![format!("none of {snapshots} histories under snapshot isolation has write skew")];
    }
    Vec::new()
}

/// This many histories under snapshot isolation always include one with write skew, even on a machine that runs one thread after the other.
const ENOUGH_SNAPSHOTS: usize = 20;

/// The number of simulated processes that share a database on a cluster. Each is a separate handle, which shares nothing with the others.
const PROCESSES: usize = 3;

fn execute(store: &str, plan: &Plan) -> Result<Executed> {
    let folder = tempfile::tempdir().map_err(slate_core::Error::custom)?;
    let (url, handles) = match store {
        "memory" => ("memory:".to_owned(), 1),
        cluster if cluster.starts_with("tikv:") => {
            (format!("{cluster}/history-{}-{:x}", std::process::id(), plan.seed), PROCESSES)
        }
        other => (format!("{other}:{}", folder.path().join("db").display()), 1),
    };
    let open = || Database::builder(&url).durability(plan.durability).open();
    let databases = (0..handles).map(|_| open()).collect::<Result<Vec<_>>>()?;
    history::execute(&databases, plan)
}
