use std::sync::atomic::{AtomicU64, Ordering};

use slate_store::Version;

/// The version of the last commit that changed something, and how many commits are under way that change it.
#[derive(Debug, Default)]
pub(crate) struct ChangeStamp {
    pending: AtomicU64,
    last: AtomicU64,
}

/// A commit that may be under way.
pub(crate) struct Change<'s>(&'s ChangeStamp);

impl ChangeStamp {
    /// Marks a change as pending until the returned value is dropped. To be called before the commit can become visible.
    pub(crate) fn begin(&self) -> Change<'_> {
        self.pending.fetch_add(1, Ordering::SeqCst);
        Change(self)
    }

    /// Whether no commit after `version` made a change, or may be making one.
    pub(crate) fn is_unchanged_since(&self, version: Version) -> bool {
        // In this order: a commit that ends in between has stored its version before it stops being pending.
        self.pending.load(Ordering::SeqCst) == 0 && self.last.load(Ordering::SeqCst) <= version.0
    }
}

impl Change<'_> {
    /// The change was committed with that version.
    pub(crate) fn committed(&self, version: Version) {
        self.0.last.fetch_max(version.0, Ordering::SeqCst);
    }

    /// The commit failed and may have become visible all the same: the change stays pending.
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
        assert!(!unchanged(9), "the second is under way");
        drop(second);
        assert_eq!([6, 7].map(unchanged), [false, true], "the second failed");
        stamp.begin().unknown();
        assert!(!unchanged(9));
    }
}
