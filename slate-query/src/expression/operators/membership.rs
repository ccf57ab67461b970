//! `$in`: whether a value equals an element of an array. A long constant array is searched as a set.

use std::sync::Arc;

use super::super::{
    Env, Evaluated, Expression, Variables,
    arguments::{Arguments, Function, NullEnds, Operands},
    fold,
    node::{ExpressionNode, Operator, count},
    operands::operands,
};
use crate::{
    Result,
    collation::Compared,
    held::{self, Held},
    order,
    raw::{OwnedValue, Value},
    value_set::{AsValue as _, ValueSet},
};

static IN: Function = Function {
    name: "$in",
    arity: (2, 2),
    call: is_in,
    operands: Operands::Compared,
    null_ends: NullEnds::Never,
    constant_array: None,
};

fn is_in<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let array = arguments.read(1, Value::as_array, 40081, "an array")?;
    let value = compared(arguments.get(0));
    Ok(array.values().any(|element| order::equal(element, value)).into())
}

/// As in comparisons, a missing value equals undefined.
fn compared<'a>(value: &'a Evaluated<'_>) -> Value<'a> {
    value.as_value().unwrap_or(Value::UNDEFINED)
}

/// `$in` with a constant array.
#[derive(Debug)]
struct InConstants {
    /// The value and the array.
    operands: [Expression; 2],
    set: ValueSet<OwnedValue>,
}

/// Up to this number of elements, comparing with each takes no longer than a search.
const FEW_ELEMENTS: usize = 8;

pub(super) fn parse(_: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let operands = operands(operand, variables)?;
    IN.check(operands.len())?;
    let call = fold::call(&IN, operands, variables)?;
    let ExpressionNode::Call(_, operands) = &call.0 else { return Ok(call) };
    let [value, array] = &**operands else { return Ok(call) };
    let elements = array.as_constant();
    let elements = elements.as_ref().and_then(Evaluated::as_value).and_then(Value::as_array);
    let Some(elements) = elements.filter(|array| array.values().nth(FEW_ELEMENTS).is_some()) else {
        return Ok(call);
    };
    let (mut values, mut bytes) = (Vec::new(), 0);
    for element in elements.values() {
        let value = Compared::new(variables.collation(), element).as_value().to_owned();
        bytes += size_of::<OwnedValue>() + value.heap_bytes();
        values.push(value);
    }
    held::keep_constant(bytes)?;
    let operands = [value.clone(), array.clone()];
    let set = values.into_iter().collect();
    Ok(Expression(ExpressionNode::Operator(Arc::new(InConstants { operands, set }))))
}

impl Operator for InConstants {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let [value, _] = &self.operands;
        let value = value.evaluate(env)?;
        count(compared(&value))?;
        let mut held = Held::of(value.heap_bytes())?;
        let value = Compared::new(env.collation(), compared(&value));
        held.add(value.heap_bytes())?;
        Ok(self.set.contains(value.as_value()).into())
    }

    fn operands(&self) -> Vec<&Expression> {
        self.operands.iter().collect()
    }

    fn as_call(&self) -> Option<(&'static str, &[Expression])> {
        Some((IN.name, &self.operands))
    }
}
