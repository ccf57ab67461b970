//! Places in the code, each between two steps of a write, at which a process ends as if it were killed.

use crate::Broken;

/// The places in `slate-core` and `slate-store` that are passed on every store.
const OF_EACH_STORE: [&str; 9] = [
    "after-apply",
    "after-commit",
    "after-compact",
    "after-drop-of-keyspaces",
    "after-publish",
    "before-apply",
    "before-drop-of-keyspace",
    "before-publish",
    "in-build-round",
];

/// The places in the compaction of redb's files.
const OF_REDB: [&str; 3] = ["before-commit-of-a-step", "between-passes-of-steps", "between-rewritten-chunks"];

/// In a run with this many kills, each place must have ended a process. Half of the processes have a place, so each place is chosen at
/// least 20 times.
const KILLS_THAT_REACH_ALL: u32 = 500;

/// The number of processes that ended at each place.
#[derive(Debug)]
pub(super) struct Places {
    ended: Vec<(&'static str, u32)>,
    next: usize,
}

impl Places {
    /// Returns the places of a store.
    pub(super) fn of(store: &str) -> Self {
        let own: &[&str] = if store == "redb" { &OF_REDB } else { &[] };
        Self { ended: OF_EACH_STORE.iter().chain(own).map(|place| (*place, 0)).collect(), next: 0 }
    }

    /// Returns the next place, in rotation.
    pub(super) fn next(&mut self) -> Option<&'static str> {
        self.next = (self.next + 1) % self.ended.len();
        self.ended.get(self.next).map(|(place, _)| *place)
    }

    /// Counts a process that has ended at a place.
    pub(super) fn count(&mut self, place: &str) {
        self.ended.iter_mut().filter(|(known, _)| *known == place).for_each(|(_, ended)| *ended += 1);
    }

    /// Describes the numbers for a report.
    pub(super) fn summary(&self) -> String {
        let places: Vec<String> = self.ended.iter().map(|(place, ended)| format!("{place} {ended}")).collect();
        format!("ended at {}", places.join(", "))
    }

    /// Returns a broken promise for each place at which no process ended; none if the run has fewer than [`KILLS_THAT_REACH_ALL`]
    /// kills.
    pub(super) fn unreached(&self, kills: u32) -> Broken {
        let unreached = self.ended.iter().filter(|(_, ended)| *ended == 0 && kills >= KILLS_THAT_REACH_ALL);
        unreached.map(|(place, _)| format!("nothing was tried: no process has ended at {place}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    /// Adds the names of the places in a folder of sources.
    fn find(folder: &Path, call: &str, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                find(&path, call, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.extend(text.split(call).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }

    #[test]
    fn every_place_in_the_code_is_tried() {
        let mut found = BTreeSet::new();
        for sources in ["../slate-core/src", "../slate-store/src"] {
            find(&Path::new(env!("CARGO_MANIFEST_DIR")).join(sources), "crash_point(\"", &mut found);
        }
        let known: BTreeSet<String> = OF_EACH_STORE.iter().chain(&OF_REDB).map(|place| (*place).to_owned()).collect();
        assert_eq!(found, known);
    }

    #[test]
    fn a_long_run_names_the_places_that_no_process_has_reached() {
        let mut places = Places::of("rocksdb");
        OF_EACH_STORE.iter().skip(1).for_each(|place| places.count(place));
        assert_eq!(places.unreached(KILLS_THAT_REACH_ALL - 1), [""; 0]);
        assert_eq!(places.unreached(KILLS_THAT_REACH_ALL), ["nothing was tried: no process has ended at after-apply"]);
        assert_eq!(Places::of("redb").unreached(KILLS_THAT_REACH_ALL).len(), 12);
    }
}
