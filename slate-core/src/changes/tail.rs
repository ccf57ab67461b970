use std::sync::{Mutex, MutexGuard, PoisonError};

use slate_store::{Version, View};

use super::log::{CommitTime, Ends, ends, trimmed};
use crate::{Result, catalog::ChangeLogInfo, clock};

/// What this process knows of the end of the log: the next commit continues there. Only the process that writes has one.
#[derive(Debug, Default)]
pub(crate) struct LogTail(Mutex<Option<TailState>>);

#[derive(Clone, Copy, Debug)]
struct TailState {
    /// The log that it is about.
    id: u32,
    version: u64,
    time: CommitTime,
    /// How many bytes were logged in all, and how many of them were trimmed.
    logged: u64,
    trimmed: u64,
    /// The milliseconds of the oldest commit in the log.
    oldest: i64,
}

/// Versions that are left out when a process continues a log that exists. Commits that were not synced may be lost by a crash, and a
/// restored backup lacks the later ones: streams that saw them then continue behind the end of the log, and must not take a new commit for
/// one that they have seen.
const LOST_COMMITS: u64 = 1 << 32;

impl LogTail {
    /// Reads the end of the log once, before the first commit that is logged.
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

    /// Forgets what it knows, after the log was trimmed.
    pub(crate) fn trimmed(&self, view: &impl View, log: &ChangeLogInfo) -> Result<()> {
        let now = read(view, log)?;
        if let Some(state) = self.state().as_mut().filter(|state| state.id == log.id) {
            (state.trimmed, state.oldest) = (now.trimmed, now.oldest);
        }
        Ok(())
    }

    /// Begins the commit of this version, under the lock that orders commits. Returns the version under which it is logged, its time, and the
    /// bytes that were logged before it. The versions of a store in memory begin again when it is loaded from a backup; those in the log go on.
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

    /// Ends the entries of a commit, under the same lock. `logged` is the number of bytes that were logged in all.
    pub(super) fn end(&self, logged: u64) {
        if let Some(state) = &mut *self.state() {
            state.logged = logged;
        }
    }

    /// Returns whether the log exceeds its limits by so much that trimming it is worth a commit.
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
