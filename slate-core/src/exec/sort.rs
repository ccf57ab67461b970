use slate_query::{
    key,
    pipeline::Kept,
    raw::Doc,
    sort::{Bound, Sort},
};
use slate_store::View;

use super::{RawRows, Resources, meter::Meter, rows::Record};
use crate::{
    Error, Result,
    interrupt::Interrupt,
    spill::{Row, Sorter},
};

/// Sorts records by their sort keys, ties by `_id`.
///
/// If the input is ordered by the first `presorted` fields, holds one group of records that are equal in these fields
/// at a time. With a limit, holds at most twice as many rows as the limit.
pub(crate) struct SortRows<V: View> {
    input: RawRows<V>,
    sort: Sort,
    presorted: usize,
    left: u64,
    sorter: Sorter,
    interrupt: Interrupt,
    position: SortPosition,
    /// Buffer for the sort key of the input's current row.
    sort_key: Vec<u8>,
    /// Rows of the group above this sort key are rejected.
    bound: Option<Bound>,
    /// The sort key's beginning, for the presorted fields, of the group that is being sorted: a row with another one
    /// begins the next group.
    group: Vec<u8>,
    kept: Kept,
    /// Buffer for a copy of the input's current row with the fields that later nodes need.
    copy: Vec<u8>,
    meter: Meter,
}

/// The state of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SortPosition {
    Start,
    /// On the first row of the next group, which was read to find the end of the previous group.
    NextGroup,
    End,
}

impl<V: View> SortRows<V> {
    pub(super) fn new(
        input: RawRows<V>,
        sort: Sort,
        presorted: usize,
        limit: Option<u64>,
        kept: Kept,
        resources: &Resources,
        meter: Meter,
    ) -> Self {
        let left = limit.unwrap_or(u64::MAX);
        // The record keys decide the rest.
        let sort = sort.up_to_id();
        Self {
            input,
            presorted: presorted.min(sort.fields().len()),
            sort,
            left,
            sorter: Sorter::new(resources.memory.clone(), left),
            interrupt: resources.interrupt.clone(),
            position: SortPosition::Start,
            sort_key: Vec::new(),
            bound: None,
            group: Vec::new(),
            kept,
            copy: Vec::new(),
            meter,
        }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        self.interrupt.tick()?;
        if self.left == 0 {
            self.sorter.clear(0);
            return Ok(false);
        }
        while !self.sorter.advance()? {
            if !self.read_group()? {
                self.left = 0;
                return Ok(false);
            }
        }
        self.left -= 1;
        Ok(true)
    }

    pub(super) fn current(&self) -> Option<Record<'_>> {
        self.sorter.current().map(|row: Row<'_>| Record { key: row.tie_key(), stored: row.payload })
    }

    pub(super) fn stored(&self) -> Option<&[u8]> {
        self.sorter.payload()
    }

    /// Sorts the next group. Returns `false` after the last.
    fn read_group(&mut self) -> Result<bool> {
        self.sorter.clear(self.left);
        self.bound = None;
        if self.position == SortPosition::Start {
            self.read_row()?;
        }
        if self.position == SortPosition::End {
            return Ok(false);
        }
        self.begin_group();
        while let Some(record) = self.input.current() {
            if self.sorter.wants(&self.sort_key, record.key) {
                if !self.kept.is_whole() {
                    self.kept.copy_stored(Doc::stored(record.stored), &mut self.copy);
                    self.sorter.push(&self.sort_key, record.key, &self.copy)?;
                } else if let Some(document) = self.input.shared() {
                    self.sorter.push_shared(&self.sort_key, record.key, document)?;
                } else {
                    self.sorter.push(&self.sort_key, record.key, record.stored)?;
                }
                if let Some(key) = self.sorter.new_bound() {
                    // The bound of this group must not reject rows of the next one.
                    self.bound = self.sort.bound(key, self.presorted);
                }
            }
            self.read_row()?;
            // Without presorted fields there is one group.
            let is_within = self.group.is_empty() || self.sort_key.starts_with(&self.group);
            if self.position == SortPosition::End || !is_within {
                break;
            }
        }
        self.sorter.finish(&mut self.interrupt)?;
        self.meter.spilled(self.sorter.spilled());
        Ok(true)
    }

    /// Advances the input to the next row that is not rejected, and encodes its sort key.
    fn read_row(&mut self) -> Result<()> {
        self.position = SortPosition::End;
        while self.input.advance()? {
            let Some(document) = self.input.stored().map(Doc::stored) else { return Ok(()) };
            if self.bound.as_ref().is_some_and(|bound| self.sort.is_above(document, bound)) {
                continue;
            }
            self.sort_key.clear();
            self.sort.key(document, &mut self.sort_key).map_err(Error::from)?;
            self.position = SortPosition::NextGroup;
            return Ok(());
        }
        Ok(())
    }

    /// Encodes the presorted part of the sort key. A change of it ends the group.
    fn begin_group(&mut self) {
        let mut end = 0;
        for (_, direction) in self.sort.fields().iter().take(self.presorted) {
            let rest = self.sort_key.get(end..).unwrap_or_default();
            end += key::skip(rest, *direction).unwrap_or(rest.len());
        }
        self.group.clear();
        self.group.extend_from_slice(self.sort_key.get(..end).unwrap_or_default());
    }
}
