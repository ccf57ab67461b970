//! Accumulators of up to n values.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, VecDeque},
};

use super::AccumulatorState;
use crate::{
    Result,
    collation::{Collation, has_text},
    expression::Evaluated,
    order,
    raw::{OwnedValue, Value},
};

fn array<'a>(values: impl IntoIterator<Item = &'a OwnedValue>) -> Evaluated<'static> {
    Evaluated::array_of_counted(values.into_iter().map(OwnedValue::as_value))
}

fn owned(value: Option<Value<'_>>) -> OwnedValue {
    value.unwrap_or(Value::NULL).to_owned()
}

fn size(value: &OwnedValue) -> usize {
    value.as_value().bytes().len() + size_of::<OwnedValue>()
}

/// `$firstN` and `$lastN`: the values of the first or of the last documents.
#[derive(Debug)]
pub(super) struct Ends {
    n: usize,
    end: End,
    values: VecDeque<OwnedValue>,
    bytes: usize,
}

/// Whether the values of the first or of the last documents are returned.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    First,
    Last,
}

impl Ends {
    pub(super) fn new(n: usize, end: End) -> Self {
        Self { n, end, values: VecDeque::new(), bytes: 0 }
    }
}

impl AccumulatorState for Ends {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        if self.values.len() == self.n {
            match self.end {
                End::First => return Ok(()),
                End::Last => self.bytes -= self.values.pop_front().as_ref().map_or(0, size),
            }
        }
        let value = owned(value);
        self.bytes += size(&value);
        self.values.push_back(value);
        Ok(())
    }

    fn most_equal(&self) -> u64 {
        u64::try_from(self.n).unwrap_or(u64::MAX)
    }

    fn finish(&mut self) -> Evaluated<'static> {
        array(&self.values)
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// `$minN` and `$maxN`: the n least or greatest values, the best first. Null and missing values are ignored.
#[derive(Debug)]
pub(super) struct Extremes {
    n: usize,
    /// The best values so far, the best first.
    best: BTreeSet<Candidate>,
    /// The number of values added so far, which numbers them: of equal values the earlier is better.
    added: u64,
    bytes: usize,
    collation: Option<Collation>,
    better: Ordering,
}

/// A value. Of two, the lesser in this order is the better one.
#[derive(Debug)]
struct Candidate {
    value: OwnedValue,
    /// The value with its strings replaced, if there is a collation and the value has strings.
    replaced: Option<OwnedValue>,
    number: u64,
    better: Ordering,
}

impl Candidate {
    fn compared(&self) -> Value<'_> {
        self.replaced.as_ref().unwrap_or(&self.value).as_value()
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = order::compare(self.compared(), other.compared());
        let order = if self.better == Ordering::Less { order } else { order.reverse() };
        order.then(self.number.cmp(&other.number))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl Extremes {
    pub(super) fn min(n: usize) -> Self {
        Self::new(n, Ordering::Less)
    }

    pub(super) fn max(n: usize) -> Self {
        Self::new(n, Ordering::Greater)
    }

    fn new(n: usize, better: Ordering) -> Self {
        Self { n, best: BTreeSet::new(), added: 0, bytes: 0, collation: None, better }
    }
}

impl AccumulatorState for Extremes {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        let Some(value) = value.filter(|value| !value.is_nullish()) else {
            return Ok(());
        };
        let replaced = self.collation.as_ref().filter(|_| has_text(value)).map(|collation| collation.apply(value));
        if self.best.len() == self.n
            && let Some(worst) = self.best.last()
        {
            let compared = replaced.as_ref().map_or(value, OwnedValue::as_value);
            if order::compare(compared, worst.compared()) != self.better {
                return Ok(());
            }
            self.bytes -= worst.bytes();
            self.best.pop_last();
        }
        self.added += 1;
        let candidate = Candidate { value: value.to_owned(), replaced, number: self.added, better: self.better };
        self.bytes += candidate.bytes();
        self.best.insert(candidate);
        Ok(())
    }

    fn most_equal(&self) -> u64 {
        u64::try_from(self.n).unwrap_or(u64::MAX)
    }

    fn collate(&mut self, collation: &Collation) {
        self.collation = Some(collation.clone());
    }

    fn finish(&mut self) -> Evaluated<'static> {
        array(self.best.iter().map(|candidate| &candidate.value))
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Candidate {
    fn bytes(&self) -> usize {
        let replaced = self.replaced.as_ref().map_or(0, |replaced| replaced.as_value().bytes().len());
        self.value.as_value().bytes().len() + replaced + 2 * size_of::<Self>()
    }
}

/// Which end of the sorted documents is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderEnd {
    Top,
    Bottom,
}

/// `$top`, `$bottom`, `$topN` and `$bottomN`: the outputs of the first or last documents in the order of their keys.
/// Documents with equal keys stay in the order of the input.
#[derive(Debug)]
pub(super) struct Ordered {
    end: OrderEnd,
    n: usize,
    is_only: bool,
    /// By key and by the number of the document.
    values: BTreeMap<(Vec<u8>, u64), OwnedValue>,
    added: u64,
    bytes: usize,
}

impl Ordered {
    pub(super) fn only(end: OrderEnd) -> Self {
        Self { is_only: true, ..Self::several(end, 1) }
    }

    pub(super) fn several(end: OrderEnd, n: usize) -> Self {
        Self { end, n, is_only: false, values: BTreeMap::new(), added: 0, bytes: 0 }
    }
}

impl AccumulatorState for Ordered {
    fn add(&mut self, value: Option<Value<'_>>, key: &[u8]) -> Result<()> {
        if self.values.len() == self.n {
            let removed = match self.end {
                OrderEnd::Top => self.values.last_entry().filter(|last| last.key().0.as_slice() > key),
                OrderEnd::Bottom => self.values.first_entry().filter(|first| first.key().0.as_slice() <= key),
            };
            let Some(removed) = removed else { return Ok(()) };
            let ((key, _), value) = removed.remove_entry();
            self.bytes -= entry_bytes(&key, &value);
        }
        self.added += 1;
        let value = owned(value);
        self.bytes += entry_bytes(key, &value);
        self.values.insert((key.to_vec(), self.added), value);
        Ok(())
    }

    fn most_equal(&self) -> u64 {
        u64::try_from(self.n).unwrap_or(u64::MAX)
    }

    fn finish(&mut self) -> Evaluated<'static> {
        match self.values.first_key_value() {
            Some((_, value)) if self.is_only => Evaluated::Owned(value.clone()),
            None if self.is_only => Evaluated::NULL,
            _ => array(self.values.values()),
        }
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

fn entry_bytes(key: &[u8], value: &OwnedValue) -> usize {
    key.len() + value.as_value().bytes().len() + 128
}
