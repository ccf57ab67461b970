//! A compaction in steps, each a durable commit that changes no key and no value: passes over the leaves of all tables, group by group. A crash
//! between two steps loses nothing, and the compaction can end after each.
//!
//! ```text
//! count pages ─→ fill sparse pages (rewrite.rs) ─→ count pages ─→ move pages to the front (moving.rs), up to twice ─→ end
//! ```
//!
//! Each pass goes table by table, and reads the last commit on the device. Between two steps others may write. The next step continues after the
//! key where the last one ended. What others write before that key is left to the next compaction. So a compaction with [many concurrent
//! writes](Stepping::is_outdated) does not show how long the file should be.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use ::redb::{Database, ReadTransaction, ReadableDatabase, StorageBackend, TableHandle, WriteTransaction};

use super::{
    apply::Written,
    error, format,
    moving::{self, SEARCHED},
    pages::{self, Header, LeafPlace},
    rewrite::{self, STEP},
};
use crate::{Compaction, Result, crash_point};

/// The longest time that a step spends only reading. It may be exceeded by its last group of leaves.
pub(super) const READING: Duration = Duration::from_millis(25);

/// Number of passes that move pages. A moved page can land beyond the end once more, while the pages of the previous step are not yet free.
const MOVING_PASSES: u8 = 2;

/// What a compaction does with each leaf.
#[derive(Clone, Copy, Debug)]
enum Pass {
    /// Counts the bytes of pages, before the sparse ones are filled.
    CountingSparse(u64),
    Filling,
    /// Counts the bytes of filled pages, to find out where the file can end.
    CountingFilled(u64),
    /// Moves pages that lie behind `end`.
    Moving {
        end: u64,
        has_moved: bool,
        passes_left: u8,
    },
    Over,
}

/// A compaction in steps. Others may write between two steps.
pub(super) struct Stepping {
    pass: Pass,
    groups: Groups,
    done: Compaction,
    /// The bytes of pages at the last count.
    used: u64,
    /// The bytes that others have changed since the compaction began.
    changed: u64,
    pub(super) begun: Instant,
    /// The length of the file in bytes when the compaction began.
    pub(super) length: u64,
    /// When a call executed its last step; `None` if `flush` or closing executes the steps.
    pub(super) called: Option<Instant>,
}

/// A call that has executed no step for this long counts as ended.
const CALL: Duration = Duration::from_secs(60);

/// Leaves of a table, as in the last commit on the device.
#[derive(Clone, Copy)]
pub(super) struct Group<'g> {
    pub(super) header: Header,
    pub(super) table: &'g str,
    /// All keys of the group are above this one.
    pub(super) after: Option<&'g [u8]>,
    pub(super) leaves: &'g [LeafPlace],
}

impl Stepping {
    /// Begins with the first leaf.
    pub(super) fn begin(database: &Database, storage: &dyn StorageBackend) -> Result<Self> {
        // An upper bound of the used bytes, until they are counted.
        let length = storage.len().map_err(error::reading)?;
        Ok(Self {
            pass: Pass::CountingSparse(0),
            groups: Groups::of(database)?,
            done: Compaction { examined: 0, total: total(length) },
            used: length,
            changed: 0,
            begun: Instant::now(),
            length,
            called: None,
        })
    }

    /// Returns whether sparse pages are counted, and none is filled yet.
    pub(super) fn is_about_to_fill(&self) -> bool {
        self.is_filling() && self.done.examined == 0
    }

    pub(super) fn is_filling(&self) -> bool {
        matches!(self.pass, Pass::Filling)
    }

    /// Returns whether the pass that fills pages has ended.
    pub(super) fn is_filled(&self) -> bool {
        !matches!(self.pass, Pass::CountingSparse(_) | Pass::Filling)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.pass, Pass::Over)
    }

    /// Returns the bytes of pages at the last count.
    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Returns an upper bound of the bytes of pages now.
    pub(super) fn used_now(&self) -> u64 {
        self.used.saturating_add(self.changed)
    }

    /// Returns whether the next compaction can continue this one.
    pub(super) fn can_go_on(&self) -> bool {
        !(self.is_outdated() || self.is_over() && self.changed > 0)
    }

    /// Returns whether a call executes this compaction: its last step was less than [`CALL`] ago.
    pub(super) fn belongs_to_a_call(&self) -> bool {
        self.called.is_some_and(|called| called.elapsed() < CALL)
    }

    /// Returns the key behind which the next group of leaves begins.
    #[cfg(test)]
    pub(super) fn after(&self) -> Option<&[u8]> {
        self.groups.after.as_deref()
    }

    pub(super) fn done(&self) -> Compaction {
        self.done
    }

    /// Records a commit between two steps.
    pub(super) fn committed(&mut self, written: Written) {
        // The size of a dropped table is not known.
        let dropped = if written.has_dropped { u64::MAX } else { 0 };
        for changed in [dropped, written.replaced, written.added.unsigned_abs()] {
            self.changed = self.changed.saturating_add(changed);
        }
    }

    /// Returns whether others have changed more than a quarter of the data since the compaction began: it may have missed sparse pages of theirs.
    pub(super) fn is_outdated(&self) -> bool {
        self.changed > self.used / 4
    }

    /// Continues until a step is committed, a pass ends, or `until` has passed. `commit` makes a transaction durable. Leaves that are neither
    /// sparse nor to be moved are only read.
    pub(super) fn step(
        &mut self,
        database: &Database,
        storage: &dyn StorageBackend,
        until: Instant,
        mut commit: impl FnMut(WriteTransaction) -> Result<()>,
    ) -> Result<()> {
        loop {
            let Some(table) = self.groups.tables.front() else { return self.end_pass(database) };
            let Some(header) = pages::header(storage)? else {
                return Err(error::damaged("the header does not have its checksum".to_owned()));
            };
            let after = self.groups.after.as_deref();
            let bytes = if let Pass::Filling = self.pass { STEP } else { SEARCHED };
            let leaves = pages::leaves(header, storage, table, after, bytes)?;
            let group = Group { header, table, after, leaves: &leaves };
            let mut is_committed = false;
            let commit = |transaction| {
                is_committed = true;
                crash_point("before-commit-of-a-step");
                commit(transaction)
            };
            let mut seen = leaves.len();
            match &mut self.pass {
                Pass::CountingSparse(used) | Pass::CountingFilled(used) => {
                    *used = leaves.iter().fold(*used, |used, leaf| used.saturating_add(leaf.used));
                }
                Pass::Filling => rewrite::fill(database, storage, group, commit)?,
                Pass::Moving { end, has_moved, .. } => {
                    seen = moving::move_to_front(database, storage, group, *end, commit)?;
                    *has_moved |= is_committed;
                }
                Pass::Over => {}
            }
            let seen = leaves.get(..seen).unwrap_or_default();
            if let Pass::Filling | Pass::Moving { .. } = self.pass {
                let examined = seen.iter().map(|leaf| leaf.length).sum();
                self.done.examined = self.done.examined.saturating_add(examined);
            }
            self.groups.go_on_behind(seen.last());
            if is_committed || Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// Ends the pass, even if leaves are left.
    pub(super) fn end_pass(&mut self, database: &Database) -> Result<()> {
        crash_point("between-passes-of-steps");
        self.pass = match self.pass {
            Pass::CountingSparse(used) => {
                (self.used, self.done.total) = (used, total(used));
                Pass::Filling
            }
            Pass::Filling => Pass::CountingFilled(0),
            Pass::CountingFilled(used) => {
                self.used = used;
                Pass::Moving { end: moving::end(used), has_moved: false, passes_left: MOVING_PASSES - 1 }
            }
            Pass::Moving { end, has_moved: true, passes_left: passes_left @ 1.. } => {
                Pass::Moving { end, has_moved: false, passes_left: passes_left - 1 }
            }
            Pass::Moving { .. } | Pass::Over => Pass::Over,
        };
        if !self.is_over() {
            self.groups = Groups::of(database)?;
        }
        Ok(())
    }
}

/// Returns how many bytes all passes examine: each leaf once to fill it, and once in each pass that moves.
fn total(used: u64) -> u64 {
    used.saturating_mul(1 + u64::from(MOVING_PASSES))
}

/// The place where the next group of leaves begins.
struct Groups {
    /// The tables that are left, with the current one first.
    tables: VecDeque<String>,
    /// The key in the current table after which the next group begins; `None` at its start.
    after: Option<Box<[u8]>>,
}

impl Groups {
    fn of(database: &Database) -> Result<Self> {
        // An open read transaction would keep redb from using the pages that the steps free.
        Ok(Self { tables: tables(&database.begin_read().map_err(error::storage)?)?.into(), after: None })
    }

    /// Continues after this leaf. After the last leaf of a table, or with `None`, continues with the next table.
    fn go_on_behind(&mut self, last: Option<&LeafPlace>) {
        self.after = last.and_then(|last| last.up_to.clone());
        if self.after.is_none() {
            self.tables.pop_front();
        }
    }
}

/// Returns the names of the tables of keyspaces.
fn tables(transaction: &ReadTransaction) -> Result<Vec<String>> {
    let handles = transaction.list_tables().map_err(error::storage)?;
    Ok(handles.map(|handle| handle.name().to_owned()).filter(|name| !format::is_mark(name)).collect())
}
