//! Checks the state after a crash against the results of the transactions before it, independently of the device's records.

use std::{sync::Arc, time::Duration};

use slate_store_simulated::{Durability, Optimistic, Result, Store, Transaction, Version, View};

use super::{
    Attempt, Outcome, Stamps,
    device::{Commit, Counter, Handle, SimulatedDevice, State, state_of},
};

/// The state that the layer shows when it is opened again.
pub(super) struct Recovered {
    version: Version,
    state: State,
}

impl Recovered {
    /// Opens the layer over a device, and reads everything in a transaction.
    pub(super) fn read(device: &Arc<SimulatedDevice>) -> Result<Self> {
        let transaction = Optimistic::over(Handle(Arc::clone(device))).begin(Duration::ZERO)?;
        let view = transaction.view();
        Ok(Self { version: view.version(), state: state_of(&view)? })
    }

    fn counter(&self, key: u8) -> Counter {
        self.state.get(&key).copied().unwrap_or_default()
    }
}

/// Which part of a commit exists after a crash. Counters only grow, so a greater value includes a smaller one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Whole,
    Part,
    Missing,
}

fn presence(attempt: &Attempt, found: &Recovered) -> Presence {
    let there = attempt.writes.iter().filter(|(key, written)| found.counter(*key).value >= *written).count();
    match there {
        0 => Presence::Missing,
        _ if there == attempt.writes.len() => Presence::Whole,
        _ => Presence::Part,
    }
}

/// Fails with a sentence about the first broken promise: each acknowledged `Sync` commit exists, no commit exists in part or without an
/// earlier one, versions do not decrease, and each counter and its stamp come from one commit.
pub(super) fn check_recovered(
    begin: &Commit,
    attempts: &[Attempt],
    found: &Recovered,
) -> std::result::Result<(), String> {
    let mut commits: Vec<(Version, &Attempt)> = attempts
        .iter()
        .filter(|attempt| !attempt.writes.is_empty())
        .filter_map(|attempt| match attempt.outcome {
            Outcome::Committed { version, .. } => Some((version, attempt)),
            Outcome::Conflict | Outcome::Failed => None,
        })
        .collect();
    commits.sort_by_key(|(version, _)| *version);
    let (mut first_missing, mut last) = (None, begin.version);
    for (version, attempt) in &commits {
        match (presence(attempt, found), first_missing) {
            (Presence::Part, _) => {
                return Err(format!(
                    "after a crash the commit {version:?} is there in part: {attempt:?}, {:?}",
                    found.state
                ));
            }
            (Presence::Missing, _) if attempt.durability == Durability::Sync => {
                return Err(format!("the acknowledged Sync commit {version:?} was lost by a crash"));
            }
            (Presence::Missing, _) => first_missing = first_missing.or(Some(*version)),
            (Presence::Whole, Some(missing)) => {
                return Err(format!(
                    "after a crash the commit {version:?} is there without {missing:?}, which came before it"
                ));
            }
            (Presence::Whole, None) => last = *version,
        }
    }
    if found.version < last {
        return Err(format!("after a crash the last version is {:?}, and the commit {last:?} is there", found.version));
    }
    let failed = || attempts.iter().filter(|attempt| matches!(attempt.outcome, Outcome::Failed));
    let keys = begin.state.keys().chain(found.state.keys());
    for key in keys {
        let (before, now) = (begin.state.get(key).copied().unwrap_or_default(), found.counter(*key));
        if now.value == before.value {
            if now.stamp != before.stamp {
                return Err(format!("key {key} was not written, and has become {now:?} from {before:?}"));
            }
            continue;
        }
        let wrote = |attempt: &Attempt| attempt.writes.contains(&(*key, now.value));
        let known = commits.iter().find(|(_, attempt)| wrote(attempt));
        let is_right = match known {
            Some((version, attempt)) => now.stamp == attempt.stamp(*version),
            // A commit of unknown outcome.
            None => failed().filter(|attempt| wrote(attempt)).any(|attempt| {
                let is_of_it = now.stamp.is_some() == (attempt.stamps == Stamps::Stored);
                let is_in_time = now.stamp.is_none_or(|stamp| stamp > begin.version && stamp <= found.version);
                is_of_it && is_in_time && presence(attempt, found) == Presence::Whole
            }),
        };
        if !is_right {
            return Err(format!("after a crash key {key} is {now:?}, which no commit has written: {attempts:?}"));
        }
    }
    Ok(())
}
