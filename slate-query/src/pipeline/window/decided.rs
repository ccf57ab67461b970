//! Accumulators whose result depends on few documents of the window.

use std::{cmp::Ordering, collections::BTreeSet, ops::Range};

use super::{column::Column, function::Operand, ranked::Ranked};
use crate::{
    Result,
    collation::{Collation, compare},
    expression::{
        Evaluated,
        accumulator::{AccumulatorSpec, Deciding, DecidingOrder, percentile_number},
    },
    key::Direction,
    raw::Value,
    work,
};

/// The documents of a window in the accumulator's order.
///
/// A document is added when the window reaches it and removed when the window has left it. The result is that of the
/// accumulator over the documents that decide it, so a window costs these and the logarithm of its length.
#[derive(Debug, Default)]
pub(super) struct Decided {
    window: Range<usize>,
    ranked: Ranked,
    /// The documents whose value equals that of no document before them in the window, if they decide.
    firsts: BTreeSet<usize>,
}

impl Decided {
    /// Returns the result for a window, which begins and ends nowhere before the last one.
    pub(super) fn value(
        &mut self,
        spec: &AccumulatorSpec,
        deciding: Deciding,
        column: &Column<Operand>,
        window: Range<usize>,
    ) -> Result<Evaluated<'static>> {
        if !matches!(deciding.order(), DecidingOrder::Documents) {
            self.move_to(spec, deciding, column, &window)?;
        }
        let input = column.get(window.start).filter(|_| !window.is_empty()).and_then(|first| first.input.as_deref());
        let (mut gathered, n) = spec.start_with(input);
        let mut rows: Vec<usize> = match deciding {
            Deciding::First(DecidingOrder::Documents) => window.take(n).collect(),
            Deciding::Last(DecidingOrder::Documents) => window.rev().take(n).collect(),
            Deciding::First(_) => self.ranked.iter().take(n).collect(),
            Deciding::Last(_) => self.ranked.iter().rev().take(n).collect(),
            Deciding::Distinct => self.firsts.iter().copied().collect(),
            Deciding::Ranks => {
                let number = |place| percentile_number(column.get(self.ranked.get(place)?)?.value());
                return Ok(spec.at_ranks(self.ranked.len(), number));
            }
        };
        if let Deciding::Last(_) = deciding {
            rows.reverse();
        }
        for operand in rows.into_iter().filter_map(|row| column.get(row)) {
            work::take(1)?;
            spec.add_value(&mut gathered, operand.value(), operand.input.as_deref())?;
        }
        Ok(spec.finish(&mut gathered))
    }

    fn move_to(
        &mut self,
        spec: &AccumulatorSpec,
        deciding: Deciding,
        column: &Column<Operand>,
        window: &Range<usize>,
    ) -> Result<()> {
        let order = |a: usize, b: usize| match (column.get(a), column.get(b)) {
            (Some(a), Some(b)) => compare_by(deciding.order(), spec.collation(), a, b),
            _ => Ordering::Equal,
        };
        let counts = |row: &usize| column.get(*row).is_some_and(|operand| deciding.counts(operand.value()));
        let is_distinct = matches!(deciding, Deciding::Distinct);
        for row in (self.window.end..window.end).filter(counts) {
            work::take(1)?;
            let before = self.ranked.insert(row, order);
            if is_distinct && before.is_none_or(|before| order(before, row).is_ne()) {
                self.firsts.insert(row);
            }
        }
        for row in (self.window.start..window.start).filter(counts) {
            work::take(1)?;
            let after = self.ranked.remove(row, order);
            if is_distinct {
                self.firsts.remove(&row);
                self.firsts.extend(after.filter(|after| order(row, *after).is_eq()));
            }
        }
        self.window = window.clone();
        Ok(())
    }

    /// Returns the memory that the order uses, in bytes.
    pub(super) fn memory(&self) -> usize {
        2 * size_of::<usize>() * (self.ranked.len() + self.firsts.len())
    }
}

fn compare_by(order: DecidingOrder, collation: Option<&Collation>, a: &Operand, b: &Operand) -> Ordering {
    let values = || compare(collation, a.value().unwrap_or(Value::NULL), b.value().unwrap_or(Value::NULL));
    match order {
        DecidingOrder::Documents => Ordering::Equal,
        DecidingOrder::Keys => a.key().cmp(b.key()),
        DecidingOrder::Values(Direction::Ascending) => values(),
        DecidingOrder::Values(Direction::Descending) => values().reverse(),
        DecidingOrder::Numbers => {
            let number = |operand: &Operand| percentile_number(operand.value()).unwrap_or_default();
            number(a).total_cmp(&number(b))
        }
    }
}
