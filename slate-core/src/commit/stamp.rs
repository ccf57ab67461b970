use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use slate_store::Version;

/// The version of the last commit that changed an object, and the number of pending commits that change it.
///
/// Also lists the names of the object's parts that recent commits have changed, so that a reader whose data are outdated reads
/// these parts again instead of all.
#[derive(Debug, Default)]
pub(crate) struct ChangeStamp {
    pending: AtomicU64,
    last: AtomicU64,
    names: Mutex<ChangedNames>,
}

/// The maximum number of names of committed changes that are listed. A reader that is further behind reads everything, which costs
/// as much as reading some thousands of parts.
const MAX_NAMES: usize = 4096;

#[derive(Debug, Default)]
struct ChangedNames {
    /// The parts of each pending change, by the number of the change.
    pending: BTreeMap<u64, Vec<Box<str>>>,
    /// The number of the next change.
    next: u64,
    /// The parts of each committed change, by the version of the commit and the number of the change.
    committed: BTreeMap<(Version, u64), Vec<Box<str>>>,
    /// How many names `committed` has.
    listed: usize,
    /// Every change by a commit after this one is listed.
    complete_after: Version,
}

/// A pending change.
pub(crate) struct Change<'s> {
    stamp: &'s ChangeStamp,
    number: u64,
}

impl ChangeStamp {
    /// Marks a change of the named parts as pending until the returned value is dropped. Must be called before the commit can
    /// become visible.
    pub(crate) fn begin(&self, parts: Vec<Box<str>>) -> Change<'_> {
        let mut names = self.names();
        let number = names.next;
        names.next += 1;
        names.pending.insert(number, parts);
        self.pending.fetch_add(1, Ordering::SeqCst);
        Change { stamp: self, number }
    }

    /// Returns whether the object is the same as in a view of `version`: no later commit has changed it, and none that
    /// may change it is in progress.
    pub(crate) fn is_unchanged_since(&self, version: Version) -> bool {
        // Checks in this order because a commit that ends in between stores its version before it stops being pending.
        self.pending.load(Ordering::SeqCst) == 0 && self.last.load(Ordering::SeqCst) <= version.0
    }

    /// Returns all parts in which the object may differ between a view of `version` and any later one that is open. `None` if the
    /// commits since then are no longer listed.
    pub(crate) fn changed_since(&self, version: Version) -> Option<BTreeSet<Box<str>>> {
        let names = self.names();
        if version < names.complete_after {
            return None;
        }
        let later = names.committed.range((version, u64::MAX)..).map(|(_, parts)| parts);
        Some(names.pending.values().chain(later).flatten().cloned().collect())
    }

    /// Locks the names. A poisoned lock is sound: no code under it can panic between two dependent updates.
    fn names(&self) -> MutexGuard<'_, ChangedNames> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangedNames {
    /// Lists a pending change as committed.
    fn commit(&mut self, number: u64, version: Version) {
        let Some(parts) = self.pending.remove(&number) else { return };
        self.listed += parts.len();
        self.committed.insert((version, number), parts);
        while self.listed > MAX_NAMES
            && let Some(((version, _), parts)) = self.committed.pop_first()
        {
            self.listed -= parts.len();
            self.complete_after = version;
        }
    }
}

impl Change<'_> {
    /// Records that the change was committed with that version.
    pub(crate) fn committed(&self, version: Version) {
        self.stamp.names().commit(self.number, version);
        self.stamp.last.fetch_max(version.0, Ordering::SeqCst);
    }

    /// Records that the commit failed but may be visible: the change stays pending.
    pub(crate) fn unknown(self) {
        std::mem::forget(self);
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.stamp.names().pending.remove(&self.number);
        self.stamp.pending.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(names: &[&str]) -> Vec<Box<str>> {
        names.iter().map(|name| Box::from(*name)).collect()
    }

    #[test]
    fn a_change_counts_while_it_is_pending_and_from_its_version_on() {
        let stamp = ChangeStamp::default();
        let unchanged = |version| stamp.is_unchanged_since(Version(version));
        let changed = |version| stamp.changed_since(Version(version)).unwrap().into_iter().collect::<Vec<_>>();
        assert!(unchanged(0));
        let (first, second) = (stamp.begin(parts(&["a", "b"])), stamp.begin(parts(&["b", "c"])));
        assert_eq!(changed(9), parts(&["a", "b", "c"]), "both are pending");
        first.committed(Version(7));
        drop(first);
        assert!(!unchanged(9), "the second is pending");
        assert_eq!(changed(6), parts(&["a", "b", "c"]));
        assert_eq!(changed(7), parts(&["b", "c"]));
        drop(second);
        assert_eq!([6, 7].map(unchanged), [false, true], "the second failed");
        assert_eq!([changed(6), changed(7)], [parts(&["a", "b"]), parts(&[])]);
        stamp.begin(parts(&["d"])).unknown();
        assert!(!unchanged(9));
        assert_eq!(changed(9), parts(&["d"]), "it may be visible");
    }

    #[test]
    fn old_changes_are_forgotten_and_the_list_says_so() {
        let stamp = ChangeStamp::default();
        let commit = |version, names: &[&str]| stamp.begin(parts(names)).committed(Version(version));
        (1..=MAX_NAMES as u64).for_each(|version| commit(version, &["a"]));
        assert_eq!(stamp.changed_since(Version(0)).unwrap().len(), 1);
        commit(5_000, &["b", "c"]);
        assert_eq!([0, 1].map(|version| stamp.changed_since(Version(version))), [None, None]);
        assert_eq!(stamp.changed_since(Version(2)).unwrap().len(), 3);
        commit(5_001, &["d"; MAX_NAMES + 1]);
        assert_eq!(stamp.changed_since(Version(5_000)), None, "a change of too many parts");
        assert_eq!(stamp.changed_since(Version(5_001)).unwrap().len(), 0);
    }
}
