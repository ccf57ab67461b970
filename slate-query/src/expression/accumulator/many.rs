//! Accumulators of up to n values.

use std::{cmp::Ordering, collections::VecDeque};

use super::AccumulatorState;
use crate::{
    Result,
    collation::{Collation, compare},
    expression::Evaluated,
    raw::{OwnedValue, Value},
};

fn array<'a>(values: impl IntoIterator<Item = &'a OwnedValue>) -> Evaluated<'static> {
    Evaluated::array(values.into_iter().map(OwnedValue::as_value))
}

fn owned(value: Option<Value<'_>>) -> OwnedValue {
    value.unwrap_or(Value::NULL).to_owned()
}

fn size<'a>(values: impl IntoIterator<Item = &'a OwnedValue>) -> usize {
    values.into_iter().map(|value| value.as_value().bytes().len() + size_of::<OwnedValue>()).sum()
}

/// `$firstN`: the values of the first documents.
#[derive(Debug)]
pub(super) struct FirstN {
    n: usize,
    values: Vec<OwnedValue>,
}

impl FirstN {
    pub(super) fn new(n: usize) -> Self {
        Self { n, values: Vec::new() }
    }
}

impl AccumulatorState for FirstN {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        if self.values.len() < self.n {
            self.values.push(owned(value));
        }
        Ok(())
    }

    fn finish(&mut self) -> Evaluated<'static> {
        array(&self.values)
    }

    fn bytes(&self) -> usize {
        size(&self.values)
    }
}

/// `$lastN`: the values of the last documents.
#[derive(Debug)]
pub(super) struct LastN {
    n: usize,
    values: VecDeque<OwnedValue>,
}

impl LastN {
    pub(super) fn new(n: usize) -> Self {
        Self { n, values: VecDeque::new() }
    }
}

impl AccumulatorState for LastN {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        if self.values.len() == self.n {
            self.values.pop_front();
        }
        self.values.push_back(owned(value));
        Ok(())
    }

    fn finish(&mut self) -> Evaluated<'static> {
        array(&self.values)
    }

    fn bytes(&self) -> usize {
        size(&self.values)
    }
}

/// `$minN` and `$maxN`: the n least or greatest values, the best first. Null and missing values are ignored.
#[derive(Debug)]
pub(super) struct Extremes {
    n: usize,
    best: Vec<OwnedValue>,
    collation: Option<Collation>,
    better: Ordering,
}

impl Extremes {
    pub(super) fn min(n: usize) -> Self {
        Self { n, best: Vec::new(), collation: None, better: Ordering::Less }
    }

    pub(super) fn max(n: usize) -> Self {
        Self { n, best: Vec::new(), collation: None, better: Ordering::Greater }
    }
}

impl AccumulatorState for Extremes {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        let Some(value) = value.filter(|value| !value.is_nullish()) else {
            return Ok(());
        };
        let collation = self.collation.as_ref();
        let place = self.best.partition_point(|best| compare(collation, value, best.as_value()) != self.better);
        if place < self.n {
            self.best.truncate(self.n - 1);
            self.best.insert(place, value.to_owned());
        }
        Ok(())
    }

    fn collate(&mut self, collation: &Collation) {
        self.collation = Some(collation.clone());
    }

    fn finish(&mut self) -> Evaluated<'static> {
        array(&self.best)
    }

    fn bytes(&self) -> usize {
        size(&self.best)
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
    values: VecDeque<(Vec<u8>, OwnedValue)>,
}

impl Ordered {
    pub(super) fn only(end: OrderEnd) -> Self {
        Self { end, n: 1, is_only: true, values: VecDeque::new() }
    }

    pub(super) fn several(end: OrderEnd, n: usize) -> Self {
        Self { end, n, is_only: false, values: VecDeque::new() }
    }
}

impl AccumulatorState for Ordered {
    fn add(&mut self, value: Option<Value<'_>>, key: &[u8]) -> Result<()> {
        let place = self.values.partition_point(|(other, _)| other.as_slice() <= key);
        let is_full = self.values.len() == self.n;
        match self.end {
            OrderEnd::Top if is_full && place == self.n => return Ok(()),
            OrderEnd::Top if is_full => drop(self.values.pop_back()),
            OrderEnd::Bottom if is_full && place == 0 => return Ok(()),
            OrderEnd::Bottom if is_full => {
                self.values.pop_front();
                self.values.insert(place - 1, (key.to_vec(), owned(value)));
                return Ok(());
            }
            OrderEnd::Top | OrderEnd::Bottom => {}
        }
        self.values.insert(place, (key.to_vec(), owned(value)));
        Ok(())
    }

    fn finish(&mut self) -> Evaluated<'static> {
        match self.values.front() {
            Some((_, value)) if self.is_only => Evaluated::Owned(value.clone()),
            None if self.is_only => Evaluated::NULL,
            _ => array(self.values.iter().map(|(_, value)| value)),
        }
    }

    fn bytes(&self) -> usize {
        self.values.iter().map(|(key, value)| key.len() + value.as_value().bytes().len() + 64).sum()
    }
}
