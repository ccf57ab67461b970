//! The keyspace of the log.
//!
//! ```text
//! key    version of the commit (u64), number of the entry's first event within the commit (u32)    big-endian
//! value  time of the commit (u64), its milliseconds (i64), bytes logged before this entry (u64), events    little-endian
//! ```
//!
//! The events of a small commit are one entry. Those of a large commit are divided into entries of at most [`ENTRY`] bytes, so that they are not
//! written or read all together. A larger event is an entry of its own.

use std::ops::ControlFlow;

use slate_store::{Bounds, Cursor as _, Edge, Keyspace, LastWrites, Version, View};

use super::{Event, LogTail};
use crate::{
    Error, Result,
    catalog::{self, ChangeLogInfo},
};

/// The most bytes of an entry of several events. With its key and what a store adds it fits into 32 KiB: redb's page sizes are powers of two, so a
/// slightly longer entry would take twice the space.
const ENTRY: usize = (32 << 10) - 128;

const KEY: usize = 12;
const HEAD: usize = 24;

/// A position in the log: just after the event with this number of the commit `version`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) version: u64,
    /// The number of the event within the commit.
    pub(crate) event: u32,
}

impl Position {
    /// The end of commit `version`.
    pub(crate) fn after(version: u64) -> Self {
        Self { version, event: u32::MAX }
    }

    /// Returns the position of the previous event; the end of the previous version if this event is the first.
    pub(crate) fn previous(self) -> Self {
        match self.event.checked_sub(1) {
            Some(event) => Self { event, ..self },
            None => Self::after(self.version.saturating_sub(1)),
        }
    }

    fn key(self) -> [u8; KEY] {
        let mut key = [0; KEY];
        let (version, event) = key.split_at_mut(8);
        version.copy_from_slice(&self.version.to_be_bytes());
        event.copy_from_slice(&self.event.to_be_bytes());
        key
    }

    fn of_key(key: &[u8]) -> Option<Self> {
        let (version, event) = key.split_first_chunk()?;
        Some(Self { version: u64::from_be_bytes(*version), event: u32::from_be_bytes(event.try_into().ok()?) })
    }
}

/// When a commit was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CommitTime {
    /// Seconds in the upper half, a counter in the lower half. Unique in the log.
    pub(crate) stamp: u64,
    /// Milliseconds since 1970.
    pub(crate) millis: i64,
}

/// The header of an entry, before its events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EntryHead {
    pub(super) time: CommitTime,
    /// The bytes logged before this entry, keys included, since the log was created.
    pub(super) before: u64,
}

impl EntryHead {
    fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.time.stamp.to_le_bytes());
        out.extend_from_slice(&self.time.millis.to_le_bytes());
        out.extend_from_slice(&self.before.to_le_bytes());
    }

    fn split(value: &[u8]) -> Option<(Self, &[u8])> {
        let (stamp, rest) = value.split_first_chunk()?;
        let (millis, rest) = rest.split_first_chunk()?;
        let (before, rest) = rest.split_first_chunk()?;
        let time = CommitTime { stamp: u64::from_le_bytes(*stamp), millis: i64::from_le_bytes(*millis) };
        Some((Self { time, before: u64::from_le_bytes(*before) }, rest))
    }
}

/// Writes the events of a commit, in its last stage.
pub(crate) struct LogWriter<'w> {
    keyspace: Keyspace,
    tail: &'w LogTail,
    position: Position,
    time: CommitTime,
    /// The bytes logged before the next entry, keys included.
    logged: u64,
    next: u32,
    entry: Vec<u8>,
    /// The most bytes of an entry of several events.
    most: usize,
}

/// Returns the size of the value of an entry with one event of this size, in bytes.
pub(crate) fn entry_size(event: usize) -> usize {
    HEAD + event
}

impl<'w> LogWriter<'w> {
    /// Begins to write the events of the commit of this version.
    pub(crate) fn begin(log: &ChangeLogInfo, tail: &'w LogTail, version: Version, max_value: usize) -> Self {
        let (version, time, logged) = tail.begin(log, version);
        let position = Position { version, event: 0 };
        Self {
            keyspace: log.keyspace,
            tail,
            position,
            time,
            logged,
            next: 0,
            entry: Vec::new(),
            most: max_value.min(ENTRY),
        }
    }

    pub(crate) fn push(&mut self, event: &[u8], into: &mut dyn LastWrites) -> slate_store::Result<()> {
        if !self.entry.is_empty() && self.entry.len() + event.len() > self.most {
            self.end_entry(into)?;
        }
        if self.entry.is_empty() {
            self.entry.reserve(HEAD + event.len());
            EntryHead { time: self.time, before: self.logged }.write(&mut self.entry);
        }
        self.entry.extend_from_slice(event);
        self.next = self.next.saturating_add(1);
        Ok(())
    }

    /// Writes the last entry and adds the commit's bytes to the tail. A commit that fails earlier adds nothing.
    pub(crate) fn finish(mut self, into: &mut dyn LastWrites) -> slate_store::Result<()> {
        if !self.entry.is_empty() {
            self.end_entry(into)?;
        }
        self.tail.end(self.logged);
        Ok(())
    }

    fn end_entry(&mut self, into: &mut dyn LastWrites) -> slate_store::Result<()> {
        into.write(self.keyspace, &[(&self.position.key(), Some(&self.entry))])?;
        self.logged = self.logged.saturating_add(u64::try_from(KEY + self.entry.len()).unwrap_or(u64::MAX));
        self.position.event = self.next;
        self.entry.clear();
        Ok(())
    }
}

fn damaged() -> Error {
    Error::corrupt("the log of changes is damaged")
}

/// Calls `visitor` with the events after `after`, until it breaks. Returns the position of the event at which it broke; `None` at the end of the log.
pub(crate) fn read(
    view: &impl View,
    log: &ChangeLogInfo,
    after: Position,
    mut visitor: impl FnMut(Position, CommitTime, &Event<'_>) -> Result<ControlFlow<()>>,
) -> Result<Option<Position>> {
    let mut cursor = view.cursor(log.keyspace, Bounds::ALL)?;
    // The entry with the event `after` may contain later events.
    let next = Position { version: after.version, event: after.event.saturating_add(1) };
    let mut more = cursor.seek(Edge::Before(&next.key()))?;
    let is_of_commit = |key: &[u8]| Position::of_key(key).is_some_and(|position| position.version == after.version);
    if !more || !cursor.current().is_some_and(|(key, _)| is_of_commit(key)) {
        more = cursor.seek(Edge::AtOrAfter(&next.key()))?;
    }
    while more {
        let Some((key, value)) = cursor.current() else { break };
        let mut position = Position::of_key(key).ok_or_else(damaged)?;
        let (head, mut events) = EntryHead::split(value).ok_or_else(damaged)?;
        while !events.is_empty() {
            let (event, rest) = Event::split(events).ok_or_else(damaged)?;
            if position > after && visitor(position, head.time, &event)?.is_break() {
                return Ok(Some(position));
            }
            // No commit has that many events: the key of the entry is damaged.
            position.event = position.event.checked_add(1).ok_or_else(damaged)?;
            events = rest;
        }
        more = cursor.step_forward()?;
    }
    Ok(None)
}

/// Returns position, head and length of the entry at `edge`, if there is one. The length is that of key and value in
/// bytes.
fn entry(view: &impl View, log: &ChangeLogInfo, edge: Edge<'_>) -> Result<Option<(Position, EntryHead, u64)>> {
    let mut cursor = view.cursor(log.keyspace, Bounds::ALL)?;
    if !cursor.seek(edge)? {
        return Ok(None);
    }
    let Some((key, value)) = cursor.current() else { return Ok(None) };
    let position = Position::of_key(key).ok_or_else(damaged)?;
    let (head, _) = EntryHead::split(value).ok_or_else(damaged)?;
    Ok(Some((position, head, u64::try_from(key.len() + value.len()).unwrap_or(u64::MAX))))
}

/// Returns the ends of the log; `None` if it is empty.
pub(super) fn ends(view: &impl View, log: &ChangeLogInfo) -> Result<Option<Ends>> {
    let (Some((begin, first, _)), Some((last, head, length))) =
        (entry(view, log, Edge::First)?, entry(view, log, Edge::Last)?)
    else {
        return Ok(None);
    };
    let Position { version, .. } = last;
    Ok(Some(Ends {
        first,
        first_version: begin.version,
        version,
        time: head.time,
        logged: head.before.saturating_add(length),
    }))
}

/// The first entry of a log, and the version and time of its last commit.
pub(super) struct Ends {
    pub(super) first: EntryHead,
    first_version: u64,
    /// The version of the last commit.
    pub(super) version: u64,
    pub(super) time: CommitTime,
    pub(super) logged: u64,
}

/// Returns the position after the last event.
pub(crate) fn last_position(view: &impl View, log: &ChangeLogInfo) -> Result<Position> {
    let last = entry(view, log, Edge::Last)?.map(|(position, ..)| Position::after(position.version));
    Ok(last.unwrap_or_default().max(trimmed(view, log)?))
}

/// The size of a log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogCounts {
    pub(crate) bytes: u64,
    /// The times of the first and of the last commit in the log, in milliseconds since 1970; `None` if it is empty.
    pub(crate) first: Option<i64>,
    pub(crate) last: Option<i64>,
}

pub(crate) fn counts(view: &impl View, log: &ChangeLogInfo) -> Result<LogCounts> {
    let Some(Ends { first, time, logged, .. }) = ends(view, log)? else { return Ok(LogCounts::default()) };
    let bytes = logged.saturating_sub(first.before);
    Ok(LogCounts { bytes, first: Some(first.time.millis), last: Some(time.millis) })
}

/// Returns the least version whose entry meets a condition; `None` if no entry does. All entries after one that meets it must meet it, too.
fn bisect(view: &impl View, log: &ChangeLogInfo, is_met: impl Fn(&EntryHead, u64) -> bool) -> Result<Option<u64>> {
    let (Some((first, ..)), Some((last, ..))) = (entry(view, log, Edge::First)?, entry(view, log, Edge::Last)?) else {
        return Ok(None);
    };
    let (mut low, mut high, mut found) = (first.version, last.version, None);
    // The result is at least `low`; all entries with versions above `high` meet the condition.
    while low <= high {
        let middle = low + (high - low) / 2;
        let Some((at, head, length)) =
            entry(view, log, Edge::AtOrAfter(&Position { version: middle, event: 0 }.key()))?
        else {
            break;
        };
        if at.version <= high && !is_met(&head, length) {
            let Some(next) = at.version.checked_add(1) else { break };
            low = next;
        } else {
            if is_met(&head, length) {
                found = Some(at.version);
            }
            let Some(below) = middle.checked_sub(1) else { break };
            high = below;
        }
    }
    Ok(found)
}

/// Returns the position before the first commit with this time stamp or a later one. `None` if the log does not reach back to that time.
pub(crate) fn position_at(view: &impl View, log: &ChangeLogInfo, stamp: u64) -> Result<Option<Position>> {
    if stamp < log.since {
        return Ok(None);
    }
    let Some(version) = bisect(view, log, |head, _| head.time.stamp >= stamp)? else {
        return Ok(Some(last_position(view, log)?));
    };
    // Deleted commits, before the first one left, may have been later than `stamp`.
    let is_trimmed = catalog::trimmed_changes(view, log)?.is_some();
    let first = entry(view, log, Edge::First)?.filter(|(position, ..)| is_trimmed && position.version == version);
    if first.is_some_and(|(_, head, _)| head.time.stamp > stamp) {
        return Ok(None);
    }
    Ok(Some(Position::after(version.saturating_sub(1))))
}

/// The part of a log to delete.
#[derive(Clone, Debug)]
pub(crate) struct Trim {
    /// The position after the part: readers at or after it lose no events.
    pub(crate) position: Position,
    /// The key at which the part ends, exclusive.
    pub(crate) end: Vec<u8>,
}

/// About how many bytes of the log one commit trims: writers wait for that commit.
const TRIM_BYTES: u64 = 4 << 20;

/// Returns the oldest part of the log that exceeds a limit of age or size, up to about [`TRIM_BYTES`] and in whole commits. The last
/// commit stays. `None` if no commit is to be deleted.
pub(crate) fn trim(view: &impl View, log: &ChangeLogInfo, now_millis: i64) -> Result<Option<Trim>> {
    let Some(Ends { first, first_version, version: last, logged, .. }) = ends(view, log)? else { return Ok(None) };
    let age = i64::try_from(log.limits.age.as_millis()).unwrap_or(i64::MAX);
    let (oldest, least) = (now_millis.saturating_sub(age), logged.saturating_sub(log.limits.bytes));
    if first.time.millis >= oldest && first.before >= least {
        return Ok(None);
    }
    let enough = first.before.saturating_add(TRIM_BYTES);
    let stays = |head: &EntryHead, _| head.before >= enough || head.time.millis >= oldest && head.before >= least;
    let rest = bisect(view, log, stays)?.unwrap_or(last);
    if rest <= first_version {
        return Ok(None);
    }
    let end = Position { version: rest, event: 0 }.key().to_vec();
    Ok(Some(Trim { position: last_before(view, log, &end)?, end }))
}

/// Returns the position of the last event below the key `end`. If it is a change of a definition: the end of its commit.
fn last_before(view: &impl View, log: &ChangeLogInfo, end: &[u8]) -> Result<Position> {
    let mut cursor = view.cursor(log.keyspace, Bounds::ALL)?;
    cursor.seek(Edge::Before(end))?;
    let (key, value) = cursor.current().ok_or_else(damaged)?;
    let (mut position, (_, mut events)) =
        (Position::of_key(key).ok_or_else(damaged)?, EntryHead::split(value).ok_or_else(damaged)?);
    loop {
        let (event, rest) = Event::split(events).ok_or_else(damaged)?;
        if rest.is_empty() {
            // The invalidation after a change of a definition is computed from its event: a stream between the two would lose it.
            return Ok(if event.kind.is_of_document() { position } else { Position::after(position.version) });
        }
        position.event = position.event.checked_add(1).ok_or_else(damaged)?;
        events = rest;
    }
}

/// Returns the position of the last event that was deleted from the log; the position before all commits if nothing was.
pub(crate) fn trimmed(view: &impl View, log: &ChangeLogInfo) -> Result<Position> {
    let last = catalog::trimmed_changes(view, log)?;
    Ok(last.map_or(Position::after(0), |(version, event)| Position { version, event }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use slate_store::{Durability, Store, Transaction, TransactionExt, memory::MemoryStore};

    use super::*;
    use crate::{
        ChangeLog, ErrorKind,
        changes::{EventBuffer, EventKind, EventSource, Images},
    };

    #[test]
    fn more_events_of_a_commit_than_can_be_numbered_are_damage() {
        let log = ChangeLogInfo { keyspace: Keyspace(40), id: 1, since: 0, limits: ChangeLog::new() };
        let mut events = EventBuffer::default();
        for _ in 0..2 {
            let source = EventSource { name: "c", records: None, images: Images::None };
            events.push(EventKind::Drop, source, &[&[5, 0, 0, 0, 0]]);
        }
        let mut entry = Vec::new();
        EntryHead { time: CommitTime::default(), before: 0 }.write(&mut entry);
        events.iter().for_each(|event| entry.extend_from_slice(event));
        let store = MemoryStore::default();
        let mut transaction = store.begin(Duration::ZERO).unwrap();
        transaction.put(log.keyspace, &Position { version: 7, event: u32::MAX }.key(), &entry).unwrap();
        transaction.commit(Durability::Deferred).unwrap();
        let view = store.snapshot().unwrap();
        let read = read(&view, &log, Position::default(), |_, _, _| Ok(ControlFlow::Continue(())));
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Corrupt);
        let end = Position { version: 8, event: 0 }.key();
        assert_eq!(last_before(&view, &log, &end).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
