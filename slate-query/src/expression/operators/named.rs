//! Operators whose operands have names: `{$trim: {input: …, chars: …}}`.

use std::sync::Arc;

use super::super::{
    Env, Evaluated, Expression, Variables,
    node::{ExpressionNode, Operator, count},
};
use crate::{Code, Error, Result, held::Held, raw::Value};

/// The operands of an operator with named operands, parsed.
pub(super) struct Parts {
    parts: Vec<Option<Expression>>,
}

impl Parts {
    /// Parses `{name: operand, …}`. Each error has its own code.
    pub(super) fn parse(
        operator: &str,
        operand: Value<'_>,
        names: &[&str],
        variables: &Variables,
        (not_a_document, unknown): (i32, i32),
    ) -> Result<Self> {
        let document = operand.as_document().ok_or_else(|| {
            Error::new(Code(not_a_document), format!("{operator} takes an object, not {}", operand.kind().alias()))
        })?;
        let mut parts = vec![None; names.len()];
        for element in document.elements() {
            let place = names.iter().position(|name| name.as_bytes() == element.name);
            let part = place.and_then(|place| parts.get_mut(place)).ok_or_else(|| {
                let message = format!("unknown parameter of {operator}: {}", element.display_name());
                Error::new(Code(unknown), message)
            })?;
            *part = Some(Expression::parse(element.value, variables)?);
        }
        Ok(Self { parts })
    }

    /// Removes and returns the part at that position; `None` if it is absent.
    pub(super) fn take(&mut self, place: usize) -> Option<Expression> {
        self.parts.get_mut(place).and_then(Option::take)
    }

    /// Returns the part at that position, or a constant if it is absent.
    pub(super) fn or(&mut self, place: usize, default: &Evaluated<'_>) -> Expression {
        self.take(place).unwrap_or_else(|| Expression::constant(default.or_null()))
    }

    /// Returns the part at that position, which is required.
    pub(super) fn need(&mut self, place: usize, operator: &str, name: &str, code: i32) -> Result<Expression> {
        let missing = || Error::new(Code(code), format!("{operator} needs the parameter '{name}'"));
        self.take(place).ok_or_else(missing)
    }
}

/// Computes the value of an operator from the values of its operands. The value of an absent operand is missing.
pub(super) type Compute = for<'v> fn(&mut [Evaluated<'v>]) -> Result<Evaluated<'v>>;

/// An operator with named operands that are all evaluated before it.
struct Named {
    name: Box<str>,
    parts: Box<[Expression]>,
    compute: Compute,
}

impl std::fmt::Debug for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct(&self.name).field("parts", &self.parts).finish()
    }
}

impl Operator for Named {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let (mut values, mut held) = (Vec::with_capacity(self.parts.len()), Held::default());
        for part in &self.parts {
            let value = part.evaluate(env)?;
            held.add(value.heap_bytes())?;
            values.push(value);
        }
        values.iter().filter_map(Evaluated::as_value).try_for_each(count)?;
        (self.compute)(&mut values)
    }

    fn operands(&self) -> Vec<&Expression> {
        self.parts.iter().collect()
    }
}

/// Creates the operator. An absent part is `Expression::missing`.
pub(super) fn operator(
    name: &str,
    parts: Vec<Expression>,
    compute: Compute,
    variables: &Variables,
) -> Result<Expression> {
    let is_constant = parts.iter().all(Expression::is_constant);
    let operator =
        Expression(ExpressionNode::Operator(Arc::new(Named { name: name.into(), parts: parts.into(), compute })));
    if is_constant { operator.folded(variables) } else { Ok(operator) }
}
