use std::{cmp::Ordering, collections::BinaryHeap};

use slate_query::{key, raw::Doc, sort::Sort};
use slate_store::View;

use super::{RawRows, rows::Record};
use crate::{Error, Result};

/// Records in the order of their sort keys; ties in the order of `_id`.
///
/// Sort keys are bytes that compare as the values do. Where the input comes ordered by the first `presorted` fields,
/// one group equal in those is held at a time; with a limit, no more rows than it asks for.
pub(crate) struct SortRows<V: View> {
    input: RawRows<V>,
    sort: Sort,
    presorted: usize,
    left: u64,
    /// The sorted group, from its end.
    group: Vec<Row>,
    current: Option<Row>,
    /// The first row of the next group, which had to be read to see that the group before it had ended.
    ahead: Option<Row>,
    ended: bool,
}

/// A record held through the sort.
#[derive(Debug, Default)]
struct Row {
    sort_key: Vec<u8>,
    record_key: Vec<u8>,
    document: Vec<u8>,
}

impl Ord for Row {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.sort_key, &self.record_key).cmp(&(&other.sort_key, &other.record_key))
    }
}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Row {}

impl<V: View> SortRows<V> {
    pub(super) fn new(input: RawRows<V>, sort: Sort, presorted: usize, limit: Option<u64>) -> Self {
        Self {
            input,
            sort,
            presorted,
            left: limit.unwrap_or(u64::MAX),
            group: Vec::new(),
            current: None,
            ahead: None,
            ended: false,
        }
    }

    pub(super) fn advance(&mut self) -> Result<bool> {
        if self.group.is_empty() && self.left > 0 {
            self.read_group()?;
        }
        self.current = if self.left == 0 { None } else { self.group.pop() };
        self.left = self.left.saturating_sub(1);
        Ok(self.current.is_some())
    }

    pub(super) fn current(&self) -> Option<Record<'_>> {
        self.current.as_ref().map(|row| Record { key: &row.record_key, document: &row.document })
    }

    fn read_group(&mut self) -> Result<()> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let mut held = Held::new(most, self.current.take());
        if let Some(first) = self.ahead.take() {
            held.push(first);
        }
        while !self.ended {
            let Some(row) = self.read_row(held.spare())? else { break };
            if self.presorted > 0 && held.first().is_some_and(|first| !self.same_group(first, &row)) {
                self.ahead = Some(row);
                break;
            }
            held.push(row);
        }
        self.group = held.into_descending();
        Ok(())
    }

    fn read_row(&mut self, mut row: Row) -> Result<Option<Row>> {
        if !self.input.advance()? {
            self.ended = true;
            return Ok(None);
        }
        let Some(record) = self.input.current() else { return Ok(None) };
        row.sort_key.clear();
        self.sort.key(Doc::new(record.document), &mut row.sort_key).map_err(Error::from)?;
        row.record_key.clear();
        row.record_key.extend_from_slice(record.key);
        row.document.clear();
        row.document.extend_from_slice(record.document);
        Ok(Some(row))
    }

    /// Groups end where the bytes of the sort's presorted prefix change.
    fn same_group(&self, first: &Row, row: &Row) -> bool {
        let mut end = 0;
        for (_, direction) in self.sort.fields().iter().take(self.presorted) {
            let rest = first.sort_key.get(end..).unwrap_or_default();
            end += key::skip(rest, *direction).unwrap_or(rest.len());
        }
        first.sort_key.get(..end) == row.sort_key.get(..end)
    }
}

/// The rows of a group: all of them, or the least few.
struct Held {
    most: usize,
    all: Vec<Row>,
    least: BinaryHeap<Row>,
    spare: Option<Row>,
}

/// Up to so many rows a heap is kept; a larger limit sorts everything, which costs less than a heap of that size.
const LARGEST_HEAP: usize = 100_000;

impl Held {
    fn new(most: usize, spare: Option<Row>) -> Self {
        Self { most, all: Vec::new(), least: BinaryHeap::new(), spare }
    }

    /// A row whose buffers may be written over.
    fn spare(&mut self) -> Row {
        self.spare.take().unwrap_or_default()
    }

    /// Any row of the group.
    fn first(&self) -> Option<&Row> {
        self.all.first().or_else(|| self.least.peek())
    }

    fn push(&mut self, row: Row) {
        if self.most > LARGEST_HEAP {
            self.all.push(row);
        } else if self.least.len() < self.most {
            self.least.push(row);
        } else if let Some(mut greatest) = self.least.peek_mut() {
            self.spare = Some(if row < *greatest { std::mem::replace(&mut greatest, row) } else { row });
        }
    }

    fn into_descending(self) -> Vec<Row> {
        let mut rows = if self.most > LARGEST_HEAP { self.all } else { self.least.into_vec() };
        rows.sort_unstable_by(|a, b| b.cmp(a));
        rows
    }
}
