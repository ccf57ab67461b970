//! Decides when the file is compacted without an explicit call.
//!
//! redb lengthens the file when it is full, and pages that are split stay partly empty. `flush` and the closing of the database compact a file of
//! [`SHORTEST`] bytes or more that is over a fifth longer than expected, which also fills such pages (`rewrite.rs`). The expected length is the
//! length after the last compaction plus [9/8](EIGHTHS) of the bytes that transactions have added since.
//!
//! No transaction can begin during a compaction, so `flush` spends at most a twentieth of the time on compactions. Compaction is skipped while a
//! snapshot is open. A file that is too long, or that takes [too long](Occasion::patience) to read when it is closed, is compacted in steps
//! (`steps.rs`) for [a limited time](Space::time_for_steps), because redb's compaction cannot end early. A later `flush` continues them.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{apply::Written, options::Options};
use crate::files;

/// The length of the file and what is known of its contents. Without a path, the file is compacted only by explicit calls.
pub(super) struct Space {
    path: Option<PathBuf>,
    /// The bytes of redb's cache.
    cache: u64,
    state: Mutex<SpaceState>,
}

#[derive(Default)]
struct SpaceState {
    /// The expected length of the file after a compaction, in bytes.
    expected: u64,
    /// The bytes that transactions have added and replaced since the last compaction.
    changed: u64,
    /// The time that commits have taken since the file was opened.
    committing: Duration,
    /// Whether `expected` may be too large: the file may have been too long when it was opened, or a keyspace of unknown size was dropped.
    is_guessed: bool,
    /// Whether a compaction in steps has found damage.
    is_damaged: bool,
    /// The time before which `flush` does not compact.
    pause_until: Option<Instant>,
}

impl SpaceState {
    fn is_paused(&self, occasion: Occasion) -> bool {
        occasion == Occasion::Flush && self.pause_until.is_some_and(|end| Instant::now() < end)
    }
}

/// The occasion of a compaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// An explicit call, which compacts every file.
    Call,
    Flush,
    Close,
}

/// How a file is compacted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// In one piece, if it can be read quickly.
    Whole,
    /// In steps, for a limited time: the file is too large.
    Steps,
}

impl Occasion {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Flush => "flush",
            Self::Close => "close",
        }
    }

    /// Returns the greatest expected length in bytes of a file that is compacted as a whole. It bounds the duration, which depends on the data more
    /// than on the length of the file, if the data are in memory.
    fn limit(self) -> u64 {
        match self {
            Self::Call => u64::MAX,
            Self::Flush => LONGEST_WHOLE,
            Self::Close => 1 << 30,
        }
    }

    /// Returns the longest time that reading all entries may take before a compaction. A compaction reads and writes pages one
    /// by one: it takes seconds if they are in memory, and minutes if most of them have to be read from the device.
    pub(super) fn patience(self) -> Duration {
        match self {
            Self::Call => Duration::MAX,
            Self::Flush => Duration::from_millis(500),
            Self::Close => Duration::from_secs(2),
        }
    }
}

/// `compact_while` compacts a file of up to this length as a whole: that takes a second or two if the data are in memory, and steps would leave
/// some free pages.
pub(super) const LONGEST_WHOLE: u64 = 256 << 20;

/// The longest time that closing the database spends on steps.
const LONGEST_STEPS: Duration = Duration::from_secs(30);

/// Minimum length in bytes of a file that is compacted without an explicit call.
const SHORTEST: u64 = 16 << 20;

/// The greatest length of a file that is compacted as a whole, as a multiple of the [limit](Occasion::limit) of its expected length.
const LONGEST: u64 = 4;

/// The bytes of the pages of keys and values, in eighths of the bytes of the keys and values.
const EIGHTHS: i64 = 9;

/// The pause after a compaction in `flush`, as a multiple of its duration.
const PAUSE: u32 = 19;

impl Space {
    pub(super) fn of(path: Option<PathBuf>, options: &Options) -> Self {
        let cache = u64::try_from(options.cache_bytes).unwrap_or(u64::MAX);
        let space = Self { path, cache, state: Mutex::default() };
        space.set_compacted();
        // A shorter file cannot be much too long.
        space.state().is_guessed = space.length().is_some_and(|length| length >= SHORTEST);
        space
    }

    /// Records a commit and how long it took.
    pub(super) fn committed(&self, written: Written, took: Duration) {
        let mut state = self.state();
        state.committing = state.committing.saturating_add(took);
        let added = u64::try_from(written.added).unwrap_or_default();
        state.changed = state.changed.saturating_add(written.replaced).saturating_add(added);
        state.expected = state.expected.saturating_add_signed(written.added.saturating_mul(EIGHTHS) / 8);
        state.is_guessed |= written.has_dropped;
    }

    /// Returns how the file should be compacted on this occasion; `None` if it should not.
    pub(super) fn should_compact(&self, occasion: Occasion) -> Option<Manner> {
        let state = self.state();
        let length = self.occupied(&state)?;
        if state.is_damaged && occasion == Occasion::Flush {
            return None;
        }
        if state.is_paused(occasion) || length < SHORTEST || length <= state.expected.saturating_add(state.expected / 5)
        {
            return None;
        }
        let is_short = state.expected <= occasion.limit() && length <= occasion.limit().saturating_mul(LONGEST);
        Some(if is_short { Manner::Whole } else { Manner::Steps })
    }

    /// Returns how long a file is compacted in steps on this occasion. On closing: a quarter of the time that its commits have taken, within
    /// bounds.
    pub(super) fn time_for_steps(&self, occasion: Occasion) -> Duration {
        match occasion {
            Occasion::Call | Occasion::Flush => occasion.patience(),
            Occasion::Close => (self.state().committing / 4).clamp(occasion.patience(), LONGEST_STEPS),
        }
    }

    /// Returns whether the file is so much longer than expected that neither doubling nor replaced pages of the last commits explain it.
    pub(super) fn is_overgrown(&self) -> bool {
        /// At most half of a file is free after it was doubled, and a commit can replace all pages of the other half.
        const TIMES: u64 = 4;
        let expected = self.state().expected.max(SHORTEST);
        self.length().is_some_and(|length| length > expected.saturating_mul(TIMES))
    }

    /// Records that the file has been compacted completely.
    pub(super) fn set_compacted(&self) {
        let length = self.length().unwrap_or_default();
        let mut state = self.state();
        (state.expected, state.changed, state.is_guessed) = (length, 0, false);
    }

    /// Records that a compaction in steps has found a damaged page: `flush` compacts no more.
    pub(super) fn set_damaged(&self) {
        self.state().is_damaged = true;
    }

    /// Records that the file has been compacted in steps, and that its tables have pages of `used` bytes. Steps leave
    /// some free pages, so a short file can still be compacted as a whole.
    pub(super) fn set_stepped(&self, used: u64) {
        if used <= LONGEST_WHOLE { self.set_used(used) } else { self.set_compacted() }
    }

    /// Returns whether the expected length is a guess that could decide about a compaction on this occasion.
    pub(super) fn is_guessed(&self, occasion: Occasion) -> bool {
        let most = if occasion == Occasion::Flush { occasion.limit().saturating_mul(LONGEST) } else { u64::MAX };
        let state = self.state();
        state.is_guessed
            && !state.is_paused(occasion)
            && self.length().is_some_and(|length| (SHORTEST..=most).contains(&length))
    }

    /// Lowers the expected length to `used`, the bytes of the pages of all tables. Does not raise it: pages that were written since the last
    /// compaction may be sparse.
    pub(super) fn set_used(&self, used: u64) {
        let mut state = self.state();
        (state.expected, state.is_guessed) = (used.min(state.expected), false);
    }

    /// Records a compaction that began at `begin`, complete or not, or the reading before it. `flush` then pauses in proportion to its duration.
    pub(super) fn set_tried(&self, begin: Instant) {
        self.state().pause_until = Instant::now().checked_add(begin.elapsed().saturating_mul(PAUSE));
    }

    /// Returns the length of the file in bytes; `None` for storage of the caller's own.
    pub(super) fn length(&self) -> Option<u64> {
        Some(self.path.as_ref()?.metadata().ok()?.len())
    }

    /// Returns whether the end of the next commit may not fit on the device. `true` where the free space is unknown.
    pub(super) fn is_scarce(&self) -> bool {
        /// Bytes that suffice with a small cache. The end of a commit, which makes it visible, writes at most redb's write buffer, a part of the
        /// cache. Earlier writes of the commit find a full device in time.
        const LEAST: u64 = 1 << 30;
        self.path.as_deref().and_then(files::free_space).is_none_or(|free| free < LEAST.max(self.cache))
    }

    /// Returns the length of the file in bytes, or the bytes that it occupies on the device if it is large and little was written. redb doubles a
    /// full file, and the second half occupies nothing until it is written. Compacting a large file takes seconds, too much after few writes.
    fn occupied(&self, state: &SpaceState) -> Option<u64> {
        /// Files with a shorter expected length, in bytes, are compacted in well under a second.
        const LARGE: u64 = 256 << 20;
        /// Little was written if it is less than the expected length divided by this.
        const FEW: u64 = 8;
        let metadata = self.path.as_ref()?.metadata().ok()?;
        let is_hardly_changed = state.expected >= LARGE && state.changed < state.expected / FEW;
        Some(if is_hardly_changed { files::allocated(&metadata) } else { metadata.len() })
    }

    /// Locks the state. A poisoned lock is sound: no code under it can panic between two dependent updates.
    fn state(&self) -> MutexGuard<'_, SpaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_that_a_large_cache_can_fill_is_scarce() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let free = files::free_space(file.path());
        let is_scarce = |cache| Space::of(Some(file.path().into()), &Options::default().cache_bytes(cache)).is_scarce();
        assert!(is_scarce(usize::MAX));
        assert_eq!(is_scarce(0), free.is_none_or(|free| free < 1 << 30));
    }
}
