//! Constant folding: parts that do not depend on a document are computed when the expression is parsed, in MongoDB's order. The order is visible: a
//! constant that fails is refused even if no document is evaluated, and the position of a null decides whether the result is null or an error.

use super::{
    Env, Evaluated, Expression, Variables,
    arguments::{Function, NullEnds, Operands},
    node::ExpressionNode,
};
use crate::{
    Code, Error, Result,
    held::{self, Held},
    raw::{Doc, Value},
};

impl Expression {
    /// Replaces an expression that does not depend on a document by its value. As in MongoDB, an expression that fails
    /// is refused even if it is never evaluated; with [`Variables::lenient`] it stays as it is.
    pub(super) fn folded(self, variables: &Variables) -> Result<Self> {
        match self.computed(variables) {
            Err(_) if variables.is_lenient() => Ok(self),
            computed => computed,
        }
    }

    fn computed(&self, variables: &Variables) -> Result<Self> {
        let env = Env::new(Doc::new(&[]), 0).with_collation(variables.collation());
        let value = match self.evaluate(&env)?.into_held(&mut Held::default())? {
            Evaluated::Owned(value) => Some(value),
            Evaluated::Borrowed(value) => Some(value.to_owned()),
            Evaluated::Missing => None,
        };
        let bytes = value.as_ref().map_or(0, |value| value.as_value().bytes().len());
        held::keep_constant(bytes)?;
        Ok(Self(ExpressionNode::Constant(value)))
    }

    /// Returns whether a constant is true; `None` if the expression is not constant.
    pub(super) fn truth(&self) -> Option<bool> {
        self.as_constant().map(|constant| constant.is_true())
    }
}

/// Creates a call of a function; combines the constant operands that [`Operands`] allows.
pub(super) fn call(
    function: &'static Function,
    operands: Vec<Expression>,
    variables: &Variables,
) -> Result<Expression> {
    let operands = match function.operands {
        Operands::AsWritten | Operands::Compared => operands,
        Operands::LeftToRight => {
            let mut leading = operands;
            let rest = leading.split_off(leading.iter().take_while(|operand| operand.is_constant()).count());
            if rest.is_empty() {
                leading
            } else {
                combined(function, leading, variables)?.into_iter().chain(rest).collect()
            }
        }
        Operands::Grouped => {
            let (mut grouped, mut constants) = (Vec::new(), Vec::new());
            for operand in flattened(function, operands) {
                if operand.is_constant() {
                    constants.push(operand);
                } else {
                    grouped.extend(combined(function, std::mem::take(&mut constants), variables)?);
                    grouped.push(operand);
                }
            }
            if !grouped.is_empty() {
                constants = combined(function, constants, variables)?;
            }
            grouped.extend(constants);
            grouped
        }
        // An accumulator with a single operand accumulates the elements of that array.
        Operands::ConstantsLast | Operands::Accumulated if operands.len() > 1 => {
            let (constants, mut others): (Vec<_>, Vec<_>) =
                flattened(function, operands).into_iter().partition(Expression::is_constant);
            let constants = if others.is_empty() { constants } else { combined(function, constants, variables)? };
            others.extend(constants);
            others
        }
        Operands::ConstantsLast | Operands::Accumulated => operands,
    };
    let is_constant = operands.iter().all(Expression::is_constant);
    if let Some((place, code)) = function.constant_array
        && !is_constant
        && !variables.is_lenient()
        && let Some(constant) = operands.get(place).and_then(Expression::as_constant)
        && constant.as_value().and_then(Value::as_array).is_none()
        && (function.null_ends == NullEnds::Never || !constant.is_nullish())
    {
        return Err(Error::new(Code(code), format!("{} takes an array", function.name)));
    }
    let call = Expression(ExpressionNode::Call(function, operands.into()));
    if is_constant { call.folded(variables) } else { Ok(call) }
}

/// Replaces several constants by the function's value of them.
fn combined(function: &'static Function, constants: Vec<Expression>, variables: &Variables) -> Result<Vec<Expression>> {
    if constants.len() < 2 {
        return Ok(constants);
    }
    Ok(vec![Expression(ExpressionNode::Call(function, constants.into())).folded(variables)?])
}

/// Replaces operands that are calls of the same function by their operands.
fn flattened(function: &'static Function, operands: Vec<Expression>) -> Vec<Expression> {
    let mut flat = Vec::with_capacity(operands.len());
    for operand in operands {
        match &operand.0 {
            ExpressionNode::Call(inner, within)
                if std::ptr::eq(*inner, function) && function.is_flattened(within.len()) =>
            {
                flat.extend(within.iter().cloned());
            }
            _ => flat.push(operand),
        }
    }
    flat
}
