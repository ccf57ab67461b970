use std::sync::atomic::{AtomicU64, Ordering};

use slate_store::Version;

/// The version of the last commit that changed an object, and the number of pending commits that change it.
#[derive(Debug, Default)]
pub(crate) struct ChangeStamp {
    pending: AtomicU64,
    last: AtomicU64,
}

/// A pending change.
pub(crate) struct Change<'s>(&'s ChangeStamp);

impl ChangeStamp {
    /// Marks a change as pending until the returned value is dropped. Must be called before the commit can become
    /// visible.
    pub(crate) fn begin(&self) -> Change<'_> {
        self.pending.fetch_add(1, Ordering::SeqCst);
        Change(self)
    }

    /// Returns whether the object is the same as in a view of `version`: no later commit has changed it, and none that
    /// may change it is in progress.
    pub(crate) fn is_unchanged_since(&self, version: Version) -> bool {
        // Checks in this order because a commit that ends in between stores its version before it stops being pending.
        self.pending.load(Ordering::SeqCst) == 0 && self.last.load(Ordering::SeqCst) <= version.0
    }
}

impl Change<'_> {
    /// Records that the change was committed with that version.
    pub(crate) fn committed(&self, version: Version) {
        self.0.last.fetch_max(version.0, Ordering::SeqCst);
    }

    /// Records that the commit failed but may be visible: the change stays pending.
    pub(crate) fn unknown(self) {
        std::mem::forget(self);
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_counts_while_it_is_pending_and_from_its_version_on() {
        let stamp = ChangeStamp::default();
        let unchanged = |version| stamp.is_unchanged_since(Version(version));
        assert!(unchanged(0));
        let (first, second) = (stamp.begin(), stamp.begin());
        first.committed(Version(7));
        drop(first);
        assert!(!unchanged(9), "the second is pending");
        drop(second);
        assert_eq!([6, 7].map(unchanged), [false, true], "the second failed");
        stamp.begin().unknown();
        assert!(!unchanged(9));
    }
}
