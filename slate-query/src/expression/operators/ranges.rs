//! The ranges of `$bucket`: the lower boundary of the range that a value is in. It means the same as a `$switch` with a branch for each range, but
//! evaluates the value once, and needs no more memory than its boundaries.

use std::{cmp::Ordering, sync::Arc};

use super::super::{
    Env, Evaluated, Expression,
    node::{ExpressionNode, Operator},
};
use crate::{
    Code, Error, Result,
    collation::Collation,
    order,
    raw::{OwnedValue, Value},
    work,
};

#[derive(Debug)]
struct Ranges {
    value: Expression,
    /// The boundaries in ascending order, and the values that are compared if there is a collation.
    boundaries: Box<[OwnedValue]>,
    compared: Option<Box<[OwnedValue]>>,
    /// The result for values outside of all ranges; `None`: an error.
    otherwise: Option<OwnedValue>,
}

impl Ranges {
    /// Returns the lower boundary of the range that contains `value`; `otherwise` if none does.
    fn of(&self, value: &Evaluated<'_>, collation: Option<&Collation>) -> Result<Option<&OwnedValue>> {
        // As in comparisons, a missing value is compared as undefined.
        let value = value.as_value().unwrap_or(Value::UNDEFINED);
        let range = match (&self.compared, collation) {
            (Some(compared), Some(collation)) => {
                // The boundaries may not ascend by the collation, so the first range that contains the value counts.
                work::take(compared.len())?;
                let value = collation.apply(value);
                let is_at_or_above = |boundary: &OwnedValue| is_at_or_above(value.as_value(), boundary);
                compared.windows(2).position(|range| match range {
                    [lower, upper] => is_at_or_above(lower) && !is_at_or_above(upper),
                    _ => false,
                })
            }
            _ => {
                let above = self.boundaries.partition_point(|boundary| is_at_or_above(value, boundary));
                above.checked_sub(1).filter(|_| above < self.boundaries.len())
            }
        };
        Ok(range.and_then(|range| self.boundaries.get(range)).or(self.otherwise.as_ref()))
    }
}

fn is_at_or_above(value: Value<'_>, boundary: &OwnedValue) -> bool {
    order::compare(value, boundary.as_value()) != Ordering::Less
}

impl Operator for Ranges {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let value = self.value.evaluate(env)?;
        match self.of(&value, env.collation())? {
            Some(range) => Ok(Evaluated::Borrowed(range.as_value())),
            None => Err(Error::new(Code(40066), "no branch of $switch applies, and it has no default")),
        }
    }

    fn operands(&self) -> Vec<&Expression> {
        vec![&self.value]
    }
}

/// Returns the lower boundary of the range of a value; `otherwise` if it is in none. The boundaries ascend.
///
/// # Errors
/// Without `otherwise`, for a value in no range: 40069 if it is constant, 40066 when it is evaluated if it is not.
pub(crate) fn ranges(
    value: Expression,
    boundaries: Vec<OwnedValue>,
    otherwise: Option<OwnedValue>,
    collation: Option<&Collation>,
) -> Result<Expression> {
    let compared = collation
        .map(|collation| boundaries.iter().map(|boundary| collation.apply(boundary.as_value())).collect::<Box<[_]>>());
    let ranges = Ranges { value, boundaries: boundaries.into(), compared, otherwise };
    let Some(constant) = ranges.value.as_constant() else {
        return Ok(Expression(ExpressionNode::Operator(Arc::new(ranges))));
    };
    match ranges.of(&constant, collation)? {
        Some(range) => Ok(Expression::constant(range.as_value())),
        None => Err(Error::new(Code(40069), "no branch of $switch can apply, and it has no default")),
    }
}
