use std::{
    collections::VecDeque,
    ops::{AddAssign, Sub},
    sync::{Mutex, PoisonError},
};

use crate::Version;

/// The amounts that commits have written since the database was opened, to estimate what a snapshot retains.
#[derive(Default)]
pub(super) struct Written(Mutex<WrittenState>);

#[derive(Default)]
struct WrittenState {
    total: Amount,
    /// Some commits, in order, each with the total amount up to it.
    marks: VecDeque<(Version, Amount)>,
}

/// An amount of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    /// The bytes of keys and values that were written, and an estimate of those in deleted ranges.
    pub(super) bytes: u64,
    /// The number of keys that were deleted one by one.
    pub(super) deletes: u64,
}

/// Maximum number of marks, which take 24 KiB.
const MOST_MARKS: usize = 1024;

impl Written {
    /// Records a commit. `oldest` returns the version of the oldest snapshot.
    pub(super) fn add(&self, commit: Version, amount: Amount, oldest: impl FnOnce() -> Option<Version>) {
        // No code under this lock can panic between two dependent updates.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.total += amount;
        let total = state.total;
        if state.marks.len() >= MOST_MARKS {
            let oldest = oldest().unwrap_or(commit);
            while state.marks.get(1).is_some_and(|(version, _)| *version <= oldest) {
                state.marks.pop_front();
            }
        }
        if state.marks.len() >= MOST_MARKS {
            let mut number = 0_usize;
            state.marks.retain(|_| {
                number += 1;
                !number.is_multiple_of(2)
            });
        }
        state.marks.push_back((commit, total));
    }

    /// Returns the amount written since a snapshot of this version was opened, perhaps with that of some earlier commits.
    pub(super) fn since(&self, snapshot: Version) -> Amount {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = state.marks.partition_point(|(commit, _)| *commit <= snapshot);
        let before = shown.checked_sub(1).and_then(|last| state.marks.get(last)).map(|(_, amount)| *amount);
        state.total - before.unwrap_or_default()
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.deletes = self.deletes.saturating_add(other.deletes);
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_sub(other.bytes), deletes: self.deletes.saturating_sub(other.deletes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_since_a_snapshot_is_counted_whatever_is_forgotten() {
        let written = Written::default();
        let snapshot = Version(500);
        for commit in 1..=100_000 {
            let amount = Amount { bytes: 10, deletes: u64::from(commit % 10 == 0) };
            written.add(Version(commit), amount, || Some(snapshot));
            if commit > snapshot.0 {
                let since = written.since(snapshot);
                let exact = (commit - snapshot.0) * 10;
                assert!((exact..=exact + 1_000).contains(&since.bytes), "{since:?} after {commit}");
            }
        }
        assert!(written.0.lock().unwrap().marks.len() <= MOST_MARKS);
        assert_eq!(written.since(Version(100_000)), Amount::default());
        assert_eq!(written.since(Version(0)).bytes, 1_000_000);
    }
}
