//! Accumulators whose result depends on few documents of the window.

use std::{cmp::Ordering, collections::BTreeSet, ops::Range};

use super::{column::Column, function::Operand, ranked::Ranked};
use crate::{
    Result,
    expression::{
        Evaluated,
        accumulator::{AccumulatorSpec, Deciding, DecidingOrder, percentile_number},
    },
    work,
};

/// The documents of a window in the accumulator's order.
///
/// A document is added when the window reaches it and removed when the window has left it. The result is made of the
/// documents that decide it, so a window costs these and the logarithm of its length.
#[derive(Debug, Default)]
pub(super) struct Decided {
    window: Range<usize>,
    ranked: Ranked,
    /// The documents whose value equals that of no document before them in the window, if they decide.
    firsts: BTreeSet<usize>,
}

impl Decided {
    /// Returns the result for a window. Neither of its ends may be before that of the previous window.
    pub(super) fn value(
        &mut self,
        spec: &AccumulatorSpec,
        deciding: Deciding,
        column: &Column<Operand>,
        window: Range<usize>,
    ) -> Result<Evaluated<'static>> {
        if !matches!(deciding.order(), DecidingOrder::Documents) {
            self.move_to(deciding, column, &window)?;
        }
        let first = column.get(window.start).filter(|_| !window.is_empty());
        let n = first.and_then(|first| first.input.as_ref()).map_or(1, |input| input.n);
        let value = |row| column.get(row).and_then(Operand::value);
        let ranked = &self.ranked;
        match deciding {
            Deciding::First(DecidingOrder::Documents) => spec.of_decided(deciding, window.take(n).map(value)),
            Deciding::Last(DecidingOrder::Documents) => {
                spec.of_decided(deciding, (window.end.saturating_sub(n).max(window.start)..window.end).map(value))
            }
            Deciding::First(_) | Deciding::Extremes => spec.of_decided(deciding, ranked.iter().take(n).map(value)),
            Deciding::Last(_) => {
                let mut last: Vec<usize> = ranked.iter().rev().take(n).collect();
                last.reverse();
                spec.of_decided(deciding, last.into_iter().map(value))
            }
            Deciding::Distinct => spec.of_decided(deciding, self.firsts.iter().copied().map(value)),
            Deciding::Ranks => Ok(spec.at_ranks(ranked.len(), |place| percentile_number(value(ranked.get(place)?)))),
        }
    }

    fn move_to(&mut self, deciding: Deciding, column: &Column<Operand>, window: &Range<usize>) -> Result<()> {
        let order = |a: usize, b: usize| match (column.get(a), column.get(b)) {
            (Some(a), Some(b)) => compare_by(deciding.order(), a, b),
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

fn compare_by(order: DecidingOrder, a: &Operand, b: &Operand) -> Ordering {
    match order {
        DecidingOrder::Documents => Ordering::Equal,
        DecidingOrder::Keys => a.key().cmp(b.key()),
        DecidingOrder::Numbers => {
            let number = |operand: &Operand| percentile_number(operand.value()).unwrap_or_default();
            number(a).total_cmp(&number(b))
        }
    }
}
