use ahash::RandomState;
use slate_query::{
    key,
    pipeline::Kept,
    raw::Doc,
    sort::{Bound, Sort},
};

use super::{
    Resources,
    meter::Meter,
    rows::{BoxedRows, Record, RecordRows, Rows},
};
use crate::{
    Error, Result,
    interrupt::Interrupt,
    spill::{Row, Sorter},
};

/// Sorts rows by their sort keys, ties by the record key.
///
/// If the input is ordered by the first `presorted` fields, holds one group of rows that are equal in these fields at a
/// time. With a limit, holds at most twice as many rows, or 64 if that is more.
pub(crate) struct SortRows<I> {
    /// `None` once all of it was read.
    input: Option<I>,
    by: SortBy,
    presorted: usize,
    left: u64,
    sorter: Sorter,
    interrupt: Interrupt,
    position: SortPosition,
    /// Buffer for the sort key of the input's current row.
    sort_key: Vec<u8>,
    /// Rows of the group above this sort key are rejected.
    bound: Option<Bound>,
    /// The encoded presorted fields of the group that is being sorted. A row with others begins the next group.
    group: Vec<u8>,
    kept: Kept,
    /// Buffer for a copy of the input's current row with the fields that later nodes need.
    copy: Vec<u8>,
    meter: Meter,
}

/// The order of the rows.
enum SortBy {
    Sort(Sort),
    /// By a keyed hash of the record key. Each execution has another key, so the hash is as good as a random number.
    Random(RandomState),
}

/// The state of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SortPosition {
    Start,
    /// On the first row of the next group, which was read to find the end of the previous group.
    NextGroup,
    End,
}

impl<I: RecordRows> SortRows<I> {
    /// Sorts records, ties by `_id`.
    pub(super) fn of_records(
        input: I,
        sort: Sort,
        presorted: usize,
        limit: Option<u64>,
        kept: Kept,
        resources: &Resources,
        meter: Meter,
    ) -> Self {
        // Record keys order ties, so a last field `_id` is not needed.
        let sort = sort.up_to_id();
        let presorted = presorted.min(sort.fields().len());
        let limit = limit.unwrap_or(u64::MAX);
        Self { presorted, kept, ..Self::new(input, SortBy::Sort(sort), limit, resources, meter) }
    }

    fn new(input: I, by: SortBy, limit: u64, resources: &Resources, meter: Meter) -> Self {
        Self {
            input: Some(input),
            by,
            presorted: 0,
            left: limit,
            sorter: Sorter::new(resources.memory.clone(), limit),
            interrupt: resources.interrupt.clone(),
            position: SortPosition::Start,
            sort_key: Vec::new(),
            bound: None,
            group: Vec::new(),
            kept: Kept::default(),
            copy: Vec::new(),
            meter,
        }
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
        while let Some(input) = &self.input {
            let Some(record) = input.record() else { break };
            if self.sorter.wants(&self.sort_key, record.key) {
                if !self.kept.is_whole() {
                    self.kept.copy_stored(Doc::stored(record.stored), &mut self.copy);
                    self.sorter.push(&self.sort_key, record.key, &self.copy)?;
                } else if let Some(document) = input.shared() {
                    self.sorter.push_shared(&self.sort_key, record.key, document)?;
                } else {
                    self.sorter.push(&self.sort_key, record.key, record.stored)?;
                }
                if let (Some(key), SortBy::Sort(sort)) = (self.sorter.new_bound(), &self.by) {
                    // The bound of this group must not reject rows of the next one.
                    self.bound = sort.bound(key, self.presorted);
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
        let Some(input) = &mut self.input else { return Ok(()) };
        while input.advance()? {
            self.sort_key.clear();
            match &self.by {
                SortBy::Sort(sort) => {
                    let Some(document) = input.current() else { break };
                    if self.bound.as_ref().is_some_and(|bound| sort.is_above(document, bound)) {
                        continue;
                    }
                    sort.key(document, &mut self.sort_key).map_err(Error::from)?;
                }
                SortBy::Random(random) => {
                    let hash = input.record().map_or(0, |record| random.hash_one(record.key));
                    self.sort_key.extend_from_slice(&hash.to_be_bytes());
                }
            }
            self.position = SortPosition::NextGroup;
            return Ok(());
        }
        self.input = None;
        Ok(())
    }

    /// Encodes the presorted part of the sort key. A change of it ends the group.
    fn begin_group(&mut self) {
        let mut end = 0;
        let fields = match &self.by {
            SortBy::Sort(sort) => sort.fields(),
            SortBy::Random(_) => &[],
        };
        for (_, direction) in fields.iter().take(self.presorted) {
            let rest = self.sort_key.get(end..).unwrap_or_default();
            end += key::skip(rest, *direction).unwrap_or(rest.len());
        }
        self.group.clear();
        self.group.extend_from_slice(self.sort_key.get(..end).unwrap_or_default());
    }
}

impl<I: RecordRows> Rows for SortRows<I> {
    fn park(&mut self) {
        self.sorter.park();
        if let Some(input) = &mut self.input {
            input.park();
        }
    }

    fn advance(&mut self) -> Result<bool> {
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

    fn current(&self) -> Option<Doc<'_>> {
        self.sorter.payload().map(Doc::stored)
    }
}

impl<I: RecordRows> RecordRows for SortRows<I> {
    fn record(&self) -> Option<Record<'_>> {
        self.sorter.current().map(|row: Row<'_>| Record { key: row.tie_key(), stored: row.payload })
    }
}

impl<'v> SortRows<Numbered<'v>> {
    /// Sorts documents. Those with equal keys stay in the order of the input.
    pub(super) fn of_documents(
        input: BoxedRows<'v>,
        sort: Sort,
        limit: Option<u64>,
        resources: &Resources,
        meter: Meter,
    ) -> Self {
        Self::new(Numbered::new(input), SortBy::Sort(sort), limit.unwrap_or(u64::MAX), resources, meter)
    }

    /// Chooses `size` documents at random: the first in a random order.
    pub(super) fn sample(input: BoxedRows<'v>, size: u64, resources: &Resources, meter: Meter) -> Self {
        Self::new(Numbered::new(input), SortBy::Random(RandomState::new()), size, resources, meter)
    }
}

/// Documents as records whose keys are their numbers in the order of the input.
pub(super) struct Numbered<'v> {
    input: BoxedRows<'v>,
    number: u64,
    key: [u8; size_of::<u64>()],
    /// The current document in its stored form.
    stored: Vec<u8>,
    has_row: bool,
}

impl<'v> Numbered<'v> {
    fn new(input: BoxedRows<'v>) -> Self {
        Self { input, number: 0, key: [0; size_of::<u64>()], stored: Vec::new(), has_row: false }
    }
}

impl Rows for Numbered<'_> {
    fn park(&mut self) {
        self.input.park();
    }

    fn advance(&mut self) -> Result<bool> {
        self.has_row = self.input.advance()?;
        if let Some(document) = self.input.current().filter(|_| self.has_row) {
            self.stored.clear();
            document.append_stored(&mut self.stored);
            self.key = self.number.to_be_bytes();
            self.number = self.number.saturating_add(1);
        }
        Ok(self.has_row)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.has_row.then(|| Doc::stored(&self.stored))
    }
}

impl RecordRows for Numbered<'_> {
    fn record(&self) -> Option<Record<'_>> {
        self.has_row.then_some(Record { key: &self.key, stored: &self.stored })
    }
}
