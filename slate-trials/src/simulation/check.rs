//! Checks the reads and commits of a schedule's transactions.

use std::collections::BTreeMap;

use slate_store_simulated::Version;

use super::{
    Attempt, Outcome,
    device::{Counter, SimulatedDevice, State},
};

/// Fails with a sentence about the first promise that was broken.
pub(super) fn check(device: &SimulatedDevice, attempts: &[Attempt]) -> Result<(), String> {
    let commits: BTreeMap<Version, State> =
        device.commits().into_iter().map(|commit| (commit.version, commit.state)).collect();
    let nothing = State::new();
    let at = |version: Version| commits.range(..=version).next_back().map_or(&nothing, |(_, state)| state);
    let before = |version: Version| commits.range(..version).next_back().map_or(&nothing, |(_, state)| state);
    let value = |state: &State, key: u8| state.get(&key).map(|counter| counter.value).unwrap_or_default();
    for attempt in attempts {
        for (key, read) in &attempt.reads {
            let there = value(at(attempt.base), *key);
            if *read != there {
                return Err(format!("a snapshot of {:?} shows {read} for key {key}, which was {there}", attempt.base));
            }
        }
        let Outcome::Committed { version, is_durable } = attempt.outcome else { continue };
        if !is_durable {
            return Err(format!("the commit {version:?} was acknowledged before it was on the device"));
        }
        if !attempt.writes.is_empty() && version <= device.begin().version {
            return Err(format!("the commit {version:?} is not greater than those before the crash"));
        }
        // A commit of guards alone is not checked against what was committed after its base, if that is the last commit.
        for key in attempt.guarded.iter().chain(attempt.writes.iter().map(|(key, _)| key)) {
            let (seen, found) = (value(at(attempt.base), *key), value(before(version), *key));
            if seen != found && !attempt.writes.is_empty() {
                return Err(format!(
                    "the commit {version:?} overwrote or ignored key {key}: {seen} has become {found}"
                ));
            }
        }
        for (key, written) in &attempt.writes {
            let wanted = Counter { value: *written, stamp: attempt.stamp(version) };
            let found = commits.get(&version).and_then(|state| state.get(key));
            if found != Some(&wanted) {
                return Err(format!("the commit {version:?} wrote {wanted:?} for key {key} and shows {found:?}"));
            }
        }
    }
    // Each key counts the commits that wrote it: the acknowledged ones, and those that a failing device made visible.
    let Some((_, last)) = commits.last_key_value() else { return Ok(()) };
    for (key, counted) in last {
        let writes = |attempt: &&Attempt| attempt.writes.iter().any(|(written, _)| written == key);
        let of = |holds: fn(&Outcome) -> bool| {
            u64::try_from(attempts.iter().filter(writes).filter(|attempt| holds(&attempt.outcome)).count())
        };
        let counted = &(counted.value - value(&device.begin().state, *key));
        let known = of(|outcome| matches!(outcome, Outcome::Committed { .. })).unwrap_or_default();
        let unknown = of(|outcome| matches!(outcome, Outcome::Failed)).unwrap_or_default();
        if !(known..=known + unknown).contains(counted) {
            return Err(format!("key {key} counts {counted} of {known} commits, and {unknown} of unknown outcome"));
        }
    }
    Ok(())
}
