//! Compacts the file: as a whole, which blocks all writers and cannot be interrupted, or in steps (`steps.rs`).

use std::{
    ops::ControlFlow,
    sync::PoisonError,
    time::{Duration, Instant},
};

use ::redb::{CompactionError, Database};

use super::{
    error,
    open::Handle,
    options::Sharing,
    pages::{self, PageWalk},
    rewrite::ROOM,
    space::{LONGEST_WHOLE, Manner, Occasion},
    steps::{READING, Stepping},
    writer::{Permit, RedbWriter},
};
use crate::{Checked, Compaction, Error, Result, crash_point, trace};

/// The snapshots that the next step of a call waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepWaits {
    /// Waits for the snapshots that were opened before this time.
    until: Instant,
    /// When the step was last tried.
    tried: Instant,
}

impl StepWaits {
    fn for_snapshots_until_now() -> Self {
        let now = Instant::now();
        Self { until: now, tried: now }
    }

    /// Whether a call still waits: it last tried the step less than a second ago.
    fn is_awaited(self) -> bool {
        const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);
        self.tried.elapsed() < BETWEEN_ATTEMPTS
    }
}

/// The result of comparing pages with their checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inspected {
    Sound,
    /// Time ran out before all pages were read.
    Late,
    Damaged,
}

impl RedbWriter {
    /// Fills sparse pages, moves pages to the front of the file and truncates it.
    pub(super) fn compact(&self) -> Result<()> {
        self.check_writable()?;
        // redb copies pages as they are, and gives the copies new checksums.
        self.refuse_damage("nothing was compacted")?;
        let mut permit = self.permit()?;
        self.opened.guarded(|| self.compact_on(Occasion::Call, &mut permit))
    }

    /// Compacts the file and traces the result.
    fn compact_on(&self, occasion: Occasion, permit: &mut Permit<'_>) -> Result<()> {
        let (begin, before) = (Instant::now(), self.space.length());
        let compacted = self.compact_in(occasion, permit);
        trace::compacted(occasion.name(), [before, self.space.length()], begin.elapsed(), &compacted);
        compacted
    }

    fn compact_in(&self, occasion: Occasion, permit: &mut Permit<'_>) -> Result<()> {
        // A snapshot may be open by now. Then the compaction in steps is not reset and continues later.
        self.refuse_snapshots()?;
        let mut handle = self.opened.handle.write().unwrap_or_else(PoisonError::into_inner);
        match &mut *handle {
            Handle::Writable(database) => {
                permit.stepping = None;
                self.fill_pages(database, occasion, permit)?;
                database.compact().map_err(error::compacting)?
            }
            Handle::ReadOnly(_) | Handle::Closed => return Err(self.read_only()),
        };
        // The compaction ends with a durable commit, which includes all before it.
        self.committed(permit, self.version());
        if self.opened.storage.is_behind() {
            return Err(error::full(self.opened.storage.full()));
        }
        self.space.set_compacted();
        Ok(())
    }

    /// Fills sparse pages, unless a snapshot or another process may read the pages that this would free.
    fn fill_pages(&self, database: &Database, occasion: Occasion, permit: &mut Permit<'_>) -> Result<()> {
        if self.has_snapshots() || self.opened.sharing == Sharing::WithReaders {
            return Ok(());
        }
        if permit.version < self.version() {
            let transaction = database.begin_write().map_err(error::storage)?;
            self.commit_to_device(permit, transaction, self.version())?;
        }
        let mut stepping = Stepping::begin(database, self.opened.storage())?;
        if occasion == Occasion::Call {
            // A call may lengthen the file, so this skips the count of pages.
            stepping.end_pass(database)?;
        }
        while !stepping.is_filled() && !self.lacks_room(&stepping, occasion) {
            self.step(database, &mut stepping, permit)?;
        }
        Ok(())
    }

    /// Returns whether the pass that fills pages is about to begin and the file has no room for the new pages. Filling would lengthen the file,
    /// which only an explicit call may do.
    fn lacks_room(&self, stepping: &Stepping, occasion: Occasion) -> bool {
        let has_room = |length| length >= stepping.used().saturating_add(ROOM);
        occasion != Occasion::Call && stepping.is_about_to_fill() && !self.space.length().is_some_and(has_room)
    }

    /// Executes a step of a compaction, with at most one durable commit.
    fn step(&self, database: &Database, stepping: &mut Stepping, permit: &mut Permit<'_>) -> Result<()> {
        stepping.step(database, self.opened.storage(), Instant::now() + READING, |transaction| {
            self.commit_to_device(permit, transaction, self.version())?;
            crash_point("between-rewritten-chunks");
            Ok(())
        })
    }

    /// Executes the next step of a compaction, or all of it if the file is shared, or short and without open snapshots. `done` is what the last
    /// call returned, `None` for the first step. Returns `None` when the compaction is complete.
    pub(super) fn compact_step(&self, done: Option<Compaction>) -> Result<Option<Compaction>> {
        self.check_writable()?;
        let is_short = self.opened.storage().len().is_ok_and(|length| length <= LONGEST_WHOLE);
        let is_whole = done.is_none() && is_short && !crash_point::is_forced("steps-of-short-files");
        // Pages that another process may read are not freed, so the file would grow with each step.
        let is_shared = self.opened.sharing == Sharing::WithReaders;
        if is_shared || is_whole && !self.opened.guarded(|| Ok(self.has_snapshots()))? {
            // Checks for snapshots first, because a compaction reads the whole file before it would fail.
            self.opened.guarded(|| self.refuse_snapshots())?;
            return self.compact().map(|()| None);
        }
        let mut permit = self.permit()?;
        self.opened.guarded(|| self.next_step(done, &mut permit))
    }

    /// Executes the next step of the current compaction, or of a new one if there is none or the last step failed.
    ///
    /// A snapshot keeps redb from freeing the pages that a step replaces. So a step fails while snapshots are open that were opened before the last
    /// step ended, or before the first step was tried. It ignores later ones: then overlapping readers hold the pages of one step at most.
    fn next_step(&self, done: Option<Compaction>, permit: &mut Permit<'_>) -> Result<Option<Compaction>> {
        self.refuse_earlier_snapshots(done, permit)?;
        let begun = permit.stepping.take().filter(|stepping| done.is_some() || stepping.can_go_on());
        let mut stepping = self.begun_or_new(begun, permit)?;
        let was_over = stepping.is_over();
        if !was_over {
            let handle = self.opened.handle();
            let Handle::Writable(database) = &*handle else { return Err(self.read_only()) };
            self.step(database, &mut stepping, permit)?;
            permit.step_waits = Some(StepWaits::for_snapshots_until_now());
        }
        if stepping.is_over() && (was_over || !self.has_snapshots()) {
            self.end_steps(&stepping, permit)?;
            permit.step_waits = None;
            let lengths = [Some(stepping.length), self.space.length()];
            trace::compacted(Occasion::Call.name(), lengths, stepping.begun.elapsed(), &Ok(()));
            return Ok(None);
        }
        let done = stepping.done();
        stepping.called = Some(Instant::now());
        permit.stepping = Some(stepping);
        Ok(Some(done))
    }

    /// Returns `begun`, or a new compaction in steps. Syncs first, because steps read pages from the device.
    fn begun_or_new(&self, begun: Option<Stepping>, permit: &mut Permit<'_>) -> Result<Stepping> {
        if permit.version < self.version() {
            self.sync(permit)?;
        }
        let handle = self.opened.handle();
        let Handle::Writable(database) = &*handle else { return Err(self.read_only()) };
        begun.map_or_else(|| Stepping::begin(database, self.opened.storage()), Ok)
    }

    /// Frees the pages that the last steps replaced, so that redb truncates the file. Returns whether it could: `false` if a snapshot is open.
    fn end_steps(&self, stepping: &Stepping, permit: &mut Permit<'_>) -> Result<bool> {
        self.sync(permit)?;
        self.sync(permit)?;
        if self.has_snapshots() {
            return Ok(false);
        }
        // If it is outdated, pages written since may be sparse or at the end of the file.
        if !stepping.is_outdated() {
            self.space.set_stepped(stepping.used_now());
        }
        Ok(true)
    }

    /// Fails if a snapshot is open that the next step waits for.
    fn refuse_earlier_snapshots(&self, done: Option<Compaction>, permit: &mut Permit<'_>) -> Result<()> {
        // Otherwise later readers would share an earlier snapshot and prolong it.
        self.latest.forget();
        let begun = permit.step_waits.take().filter(|waits| done.is_some() || waits.is_awaited());
        let waits = begun.unwrap_or_else(StepWaits::for_snapshots_until_now);
        let is_open = self.latest.superseded.has_any_from_before(waits.until);
        permit.step_waits = Some(StepWaits { tried: Instant::now(), ..waits });
        if is_open { Err(error::compacting(CompactionError::TransactionInProgress)) } else { Ok(()) }
    }

    /// Fails if a snapshot is open.
    fn refuse_snapshots(&self) -> Result<()> {
        match self.has_snapshots() {
            true => Err(error::compacting(CompactionError::TransactionInProgress)),
            false => Ok(()),
        }
    }

    /// Compacts a file in steps, for a limited time, because compacting it as a whole would take too long. A later call continues. Does nothing if
    /// the file is shared or a snapshot is open.
    fn compact_in_steps(&self, occasion: Occasion, permit: &mut Permit<'_>) -> Result<()> {
        // Pages that a snapshot or another process may read are not freed, so the file would grow.
        if self.opened.sharing == Sharing::WithReaders || self.has_snapshots() {
            return Ok(());
        }
        let (begin, before) = (Instant::now(), self.space.length());
        let compacted = self.steps_within(self.space.time_for_steps(occasion), occasion, permit);
        trace::compacted(occasion.name(), [before, self.space.length()], begin.elapsed(), &compacted);
        if matches!(compacted, Err(Error::Corrupt(_))) {
            self.space.set_damaged();
        }
        compacted
    }

    fn steps_within(&self, time: Duration, occasion: Occasion, permit: &mut Permit<'_>) -> Result<()> {
        let begin = Instant::now();
        // `flush` also continues an outdated compaction: if it started over after each dropped collection or index, it might never end.
        let goes_on = |stepping: &Stepping| occasion == Occasion::Flush || stepping.can_go_on();
        let begun = permit.stepping.take().filter(goes_on);
        let mut stepping = self.begun_or_new(begun, permit)?;
        // Beside a snapshot each step would lengthen the file.
        while !stepping.is_over() && !self.has_snapshots() {
            let handle = self.opened.handle();
            let Handle::Writable(database) = &*handle else { return Err(self.read_only()) };
            // Leaves time to move pages: only moves shorten the file.
            let is_time_to_move = occasion == Occasion::Close && begin.elapsed() >= time * 2 / 3;
            if self.lacks_room(&stepping, occasion) || is_time_to_move && stepping.is_filling() {
                stepping.end_pass(database)?;
            }
            self.step(database, &mut stepping, permit)?;
            if begin.elapsed() >= time {
                break;
            }
        }
        if !stepping.is_over() || !self.end_steps(&stepping, permit)? {
            permit.stepping = Some(stepping);
        }
        Ok(())
    }

    /// Compacts the file if it is worthwhile: as a whole if that is quick, otherwise in steps for a limited time.
    /// Ignores failures: if the device is at fault, the next commit fails.
    pub(super) fn save_space(&self, occasion: Occasion, permit: &mut Permit<'_>) {
        if occasion == Occasion::Flush && permit.stepping.as_ref().is_some_and(Stepping::belongs_to_a_call) {
            return;
        }
        let begin = Instant::now();
        let Ok(has_read) = self.survey(occasion, permit) else { return };
        let steps_are_forced = occasion == Occasion::Close && crash_point::is_forced("steps-of-short-files");
        let manner = if steps_are_forced { Some(Manner::Steps) } else { self.space.should_compact(occasion) };
        match manner {
            None => {}
            // Fails at once because of the snapshot, which the trace reports.
            Some(Manner::Whole) if self.has_snapshots() => drop(self.compact_on(occasion, permit)),
            Some(Manner::Whole) => match self.inspect(begin.checked_add(occasion.patience()), permit) {
                Ok(Inspected::Sound) => drop(self.compact_on(occasion, permit)),
                Ok(Inspected::Late) if occasion == Occasion::Close => drop(self.compact_in_steps(occasion, permit)),
                Ok(Inspected::Late | Inspected::Damaged) | Err(_) => {}
            },
            Some(Manner::Steps) => drop(self.compact_in_steps(occasion, permit)),
        }
        if has_read || manner.is_some() {
            self.space.set_tried(begin);
        }
    }

    /// Compares all pages of tables with their checksums until `until`: a compaction would give damaged pages new checksums.
    fn inspect(&self, until: Option<Instant>, permit: &mut Permit<'_>) -> Result<Inspected> {
        if permit.version < self.version() {
            self.sync(permit)?;
        }
        let storage = self.opened.storage();
        let Some(header) = pages::header(storage)? else { return Ok(Inspected::Damaged) };
        let mut found = Inspected::Sound;
        let mut visitor = |checked| {
            found = match checked {
                Checked::Bytes(_) if until.is_none_or(|until| Instant::now() < until) => {
                    return ControlFlow::Continue(());
                }
                Checked::Bytes(_) => Inspected::Late,
                Checked::Damaged(_) => Inspected::Damaged,
            };
            ControlFlow::Break(())
        };
        let _ = PageWalk::new(header, storage, &mut visitor).map_err(error::reading)?.tables();
        Ok(found)
    }

    /// Sets the expected length of the file, if it is a guess and this process has written to it. Returns whether that required reading the file.
    /// The expected length is a guess if the file was long when opened (its last writer may not have compacted it), or if keyspaces were dropped.
    fn survey(&self, occasion: Occasion, permit: &mut Permit<'_>) -> Result<bool> {
        if self.version() == self.opened_at || !self.space.is_guessed(occasion) {
            return Ok(false);
        }
        if permit.version < self.version() {
            self.sync(permit)?;
        }
        let until = (occasion == Occasion::Flush).then(|| Instant::now().checked_add(occasion.patience())).flatten();
        if let Some(used) = pages::used_bytes(self.opened.storage(), until)? {
            self.space.set_used(used);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
