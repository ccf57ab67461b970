//! Accumulators as expressions, over the elements of an array or over several operands.

use super::{
    super::{
        Evaluated, Expression, Variables,
        accumulator::{self, State},
        arguments::{Arguments, wrong_type},
    },
    named::{Compute, Parts, operator},
};
use crate::{Code, Error, Result, raw::Value};

/// `$sum`, `$avg`, `$min`, `$max`, `$stdDevPop` and `$stdDevSamp`. The elements of a single operand that is an array count
/// one by one; one of several operands counts as a whole.
pub(super) fn over<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let Some(mut state) = accumulator::start(arguments.name, 1) else { return Ok(Evaluated::NULL) };
    match &*arguments.values {
        [only] if only.as_value().and_then(Value::as_array).is_some() => {
            for element in only.as_value().and_then(Value::as_array).into_iter().flat_map(crate::raw::Doc::values) {
                state.add(Some(element), &[])?;
            }
        }
        operands => operands.iter().try_for_each(|operand| state.add(operand.as_value(), &[]))?,
    }
    Ok(state.finish())
}

/// `$firstN`, `$lastN`, `$minN` and `$maxN` of an array.
pub(super) fn several(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let mut parts = Parts::parse(name, operand, &["input", "n"], variables, (5_787_801, 5_787_901))?;
    let input = parts.need(0, name, "input", 5_787_907)?;
    let n = parts.need(1, name, "n", 5_787_906)?;
    let compute: Compute = match name {
        "$firstN" => |values| best("$firstN", values),
        "$lastN" => |values| best("$lastN", values),
        "$minN" => |values| best("$minN", values),
        _ => |values| best("$maxN", values),
    };
    operator(name, vec![input, n], compute)
}

fn best<'v>(name: &str, values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let [input, n] = values else { return Ok(Evaluated::NULL) };
    let array = input.as_value().and_then(Value::as_array);
    let array = array.ok_or_else(|| wrong_type(name, 5_788_200, "an array as 'input'", input))?;
    let n = accumulator::number(name, n)?;
    let mut state =
        accumulator::start(name, n).ok_or_else(|| Error::new(Code::INTERNAL_ERROR, "no such accumulator"))?;
    array.values().try_for_each(|element| state.add(Some(element), &[]))?;
    Ok(state.finish())
}
