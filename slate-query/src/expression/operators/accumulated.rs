//! Accumulators as expressions, over the elements of an array or over several operands.

use std::sync::Arc;

use super::{
    super::{
        Env, Evaluated, Expression, Variables,
        accumulator::{self, AccumulatorState},
        arguments::{Arguments, wrong_type},
        node::{ExpressionNode, Operator},
    },
    named::Parts,
};
use crate::{Code, Error, Result, held::Held, raw::Value, work};

/// Computes `$sum`, `$avg`, `$min`, `$max`, `$stdDevPop` or `$stdDevSamp`. The elements of a single operand that is an
/// array count one by one; an array among several operands counts as a whole.
pub(super) fn over<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let Some(mut state) = accumulator::start(arguments.name, 1, arguments.collation) else {
        return Ok(Evaluated::NULL);
    };
    match &*arguments.values {
        [only] if only.as_value().and_then(Value::as_array).is_some() => {
            for element in only.as_value().and_then(Value::as_array).into_iter().flat_map(crate::raw::Doc::values) {
                work::take(1)?;
                state.add(Some(element), &[])?;
            }
        }
        operands => operands.iter().try_for_each(|operand| state.add(operand.as_value(), &[]))?,
    }
    Ok(state.finish())
}

/// Parses `$firstN`, `$lastN`, `$minN` or `$maxN` of an array.
pub(super) fn several(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let mut parts = Parts::parse(name, operand, &["input", "n"], variables, (5_787_801, 5_787_901))?;
    let input = parts.need(0, name, "input", 5_787_907)?;
    let n = parts.need(1, name, "n", 5_787_906)?;
    let is_constant = input.is_constant() && n.is_constant();
    let several = Expression(ExpressionNode::Operator(Arc::new(Several { name: name.into(), input, n })));
    if is_constant { several.folded(variables) } else { Ok(several) }
}

/// The first, last, least or greatest elements of an array.
#[derive(Debug)]
struct Several {
    name: Box<str>,
    input: Expression,
    n: Expression,
}

impl Operator for Several {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let input = self.input.evaluate(env)?;
        let _input = Held::of(input.heap_bytes())?;
        let n = self.n.evaluate(env)?;
        let array = input.as_value().and_then(Value::as_array);
        let array = array.ok_or_else(|| wrong_type(&self.name, 5_788_200, "an array as 'input'", &input))?;
        let n = accumulator::number(&self.name, &n, accumulator::NUMBER_CODES)?;
        let state = accumulator::start(&self.name, n, env.collation());
        let mut state = state.ok_or_else(|| Error::new(Code::INTERNAL_ERROR, "no such accumulator"))?;
        let (mut held, mut bytes) = (Held::default(), 0);
        for element in array.values() {
            work::take(1)?;
            state.add(Some(element), &[])?;
            held.add(state.bytes().saturating_sub(bytes))?;
            bytes = bytes.max(state.bytes());
        }
        // The values are written to the result, which is copied once.
        held.add(2 * bytes)?;
        Ok(state.finish())
    }

    fn operands(&self) -> Vec<&Expression> {
        vec![&self.input, &self.n]
    }
}
