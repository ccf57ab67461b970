use std::sync::{Mutex, MutexGuard, PoisonError};

use slate_store::{Version, View};

use super::log::{CommitTime, Ends, ends, trimmed};
use crate::{Result, catalog::ChangeLogInfo, clock};

/// The end of the log, where the next commit continues, as this process knows it. Loaded before the first logged commit.
#[derive(Debug, Default)]
pub(crate) struct LogTail(Mutex<Option<TailState>>);

#[derive(Clone, Copy, Debug)]
struct TailState {
    /// The ID of the log.
    id: u32,
    version: u64,
    time: CommitTime,
    /// All bytes logged so far, and those of them that were trimmed.
    logged: u64,
    trimmed: u64,
    /// The time of the oldest commit in the log, in milliseconds since 1970.
    oldest: i64,
}

/// Versions that a process skips when it continues an existing log. A crash loses commits that were not synced, and a restored backup lacks later
/// ones. A stream that has seen such commits continues beyond the end of the log; no new commit may have a version that it has seen.
const LOST_COMMITS: u64 = 1 << 32;

impl LogTail {
    /// Reads the end of the log, if it was not read before.
    pub(crate) fn load(&self, view: &impl View, log: &ChangeLogInfo) -> Result<()> {
        if self.state().is_some_and(|state| state.id == log.id) {
            return Ok(());
        }
        let mut read = read(view, log)?;
        if read.version > 0 {
            read.version = read.version.saturating_add(LOST_COMMITS);
        }
        let mut state = self.state();
        if state.is_none_or(|state| state.id != log.id) {
            *state = Some(read);
        }
        Ok(())
    }

    /// Reads again how much was trimmed and the time of the oldest commit. Called after a trim.
    pub(crate) fn trimmed(&self, view: &impl View, log: &ChangeLogInfo) -> Result<()> {
        let now = read(view, log)?;
        if let Some(state) = self.state().as_mut().filter(|state| state.id == log.id) {
            (state.trimmed, state.oldest) = (now.trimmed, now.oldest);
        }
        Ok(())
    }

    /// Begins the commit of this version, under the lock that orders commits. Returns the version under which it is logged, its time, and the bytes
    /// logged before it. A memory store's versions restart when it is loaded from a backup; those in the log continue.
    pub(super) fn begin(&self, log: &ChangeLogInfo, version: Version) -> (u64, CommitTime, u64) {
        let millis = clock::now_millis();
        let mut guard = self.state();
        let state = guard.get_or_insert(TailState::empty(log));
        if state.logged == state.trimmed {
            state.oldest = millis;
        }
        state.version = version.0.max(state.version.saturating_add(1));
        state.time = CommitTime {
            stamp: clock::timestamp(millis).max(state.time.stamp.saturating_add(1)),
            millis: millis.max(state.time.millis),
        };
        (state.version, state.time, state.logged)
    }

    /// Ends the commit, under the same lock. `logged` is the number of all bytes logged so far.
    pub(super) fn end(&self, logged: u64) {
        if let Some(state) = &mut *self.state() {
            state.logged = logged;
        }
    }

    /// Returns whether the log exceeds a limit by more than an eighth, and an age limit by another second: enough to be worth a commit.
    pub(crate) fn is_due(&self, log: &ChangeLogInfo) -> bool {
        let Some(state) = self.state().filter(|state| state.id == log.id) else { return false };
        let bytes = state.logged.saturating_sub(state.trimmed);
        let age = log.limits.age.as_millis();
        let oldest = u128::try_from(state.time.millis.saturating_sub(state.oldest)).unwrap_or_default();
        bytes > log.limits.bytes.saturating_add(log.limits.bytes / 8) || oldest > age + age / 8 + 1_000
    }

    fn state(&self) -> MutexGuard<'_, Option<TailState>> {
        // No code under this lock can panic between two dependent updates.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TailState {
    fn empty(log: &ChangeLogInfo) -> Self {
        let time = CommitTime { stamp: log.since, millis: 0 };
        Self { id: log.id, version: 0, time, logged: 0, trimmed: 0, oldest: i64::MAX }
    }
}

fn read(view: &impl View, log: &ChangeLogInfo) -> Result<TailState> {
    let empty = TailState { version: trimmed(view, log)?.version, ..TailState::empty(log) };
    let Some(Ends { first, version, time, logged, .. }) = ends(view, log)? else { return Ok(empty) };
    Ok(TailState { version, time, logged, trimmed: first.before, oldest: first.time.millis, ..empty })
}
