//! `$percentile` and `$median` over the elements of an array.

use super::{
    super::{
        Evaluated, Expression, Variables,
        accumulator::percentile::{Operands, Ranks},
    },
    named::operator,
};
use crate::{Result, raw::Value};

pub(super) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let Operands { input, ranks } = Operands::parse(name, operand, variables)?;
    match ranks {
        Some(ranks) => operator(name, vec![input, ranks], percentile, variables),
        None => operator(name, vec![input], median, variables),
    }
}

fn median<'v>(values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let [input] = values else { return Ok(Evaluated::NULL) };
    Ranks::Median.over(input.as_value())
}

fn percentile<'v>(values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let [input, ranks] = values else { return Ok(Evaluated::NULL) };
    Ranks::parse(ranks.or_null())?.over(input.as_value())
}
