use std::{fmt::Debug, sync::Arc};

use super::{
    Env, Evaluated,
    arguments::Function,
    comparison::Logic,
    evaluated::{ArrayWriter, DocumentWriter, check_depth, check_size},
    path,
};
use crate::{
    Result,
    raw::{FieldName, Kind, OwnedValue, Value},
    work,
};

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Expression(pub(super) ExpressionNode);

#[derive(Clone, Debug)]
pub(super) enum ExpressionNode {
    /// `None`: missing.
    Constant(Option<OwnedValue>),
    /// A variable, and the path below it.
    Path(Variable, Arc<[FieldName]>),
    Document(Arc<[(Box<[u8]>, Expression)]>),
    Array(Arc<[Expression]>),
    /// A function of the values of its operands.
    Call(&'static Function, Arc<[Expression]>),
    /// An operator that evaluates its operands itself.
    Operator(Arc<dyn Operator>),
}

/// A variable of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variable {
    /// The document.
    Root,
    /// The time of the operation.
    Now,
    /// The variable at this distance from the innermost frame.
    Frame(usize),
}

/// An operator that decides itself which operands are evaluated, and how often.
pub(super) trait Operator: Debug + Send + Sync {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>>;

    /// Returns the operands that are always evaluated in the environment of the operator. They determine whether the
    /// operator is constant and which fields it reads.
    fn operands(&self) -> Vec<&Expression>;

    /// Returns the operator as an "and" or "or"; `None` for any other. An index can serve its operands.
    fn logic(&self) -> Option<Logic<'_>> {
        None
    }

    /// Returns the function and the operands that the operator was written with, if it evaluates that function in another way.
    fn as_call(&self) -> Option<(&'static str, &[Expression])> {
        None
    }

    /// Returns whether equal operands always give equal values. False for `$rand`, for example, which must not be
    /// computed once and reused.
    fn is_repeatable(&self) -> bool {
        true
    }
}

/// Reading a value of at most this many bytes is not counted as work.
const SHORT: usize = 256;

/// Counts the work of reading a value.
///
/// # Errors
/// If the call is over.
#[inline]
pub(super) fn count(value: Value<'_>) -> Result<()> {
    let bytes = value.bytes().len();
    if bytes > SHORT { work::take(work::of_bytes(bytes)) } else { Ok(()) }
}

/// Refuses a computed value that is too large or nests too deeply.
#[inline]
fn checked(value: Evaluated<'_>) -> Result<Evaluated<'_>> {
    if let Evaluated::Owned(owned) = &value {
        count(owned.as_value())?;
        check_size(owned.as_value().bytes().len())?;
        check_depth(owned.as_value())?;
    }
    Ok(value)
}

impl Expression {
    pub(super) fn constant(value: Value<'_>) -> Self {
        Self(ExpressionNode::Constant(Some(value.to_owned())))
    }

    /// Returns whether the expression is a constant.
    pub(super) fn is_constant(&self) -> bool {
        matches!(self.0, ExpressionNode::Constant(_))
    }

    /// Returns whether the expression is a path or a constant, which no value makes fail.
    pub(crate) fn is_infallible(&self) -> bool {
        matches!(self.0, ExpressionNode::Constant(_) | ExpressionNode::Path(..))
    }

    /// Returns the value of a constant; `None` for other expressions. `Some(Missing)` for `$$REMOVE`.
    pub fn as_constant(&self) -> Option<Evaluated<'_>> {
        match &self.0 {
            ExpressionNode::Constant(None) => Some(Evaluated::Missing),
            ExpressionNode::Constant(Some(value)) => Some(Evaluated::Borrowed(value.as_value())),
            _ => None,
        }
    }

    /// Returns the fields of a document that is computed field by field; `None` for other expressions.
    pub(crate) fn as_fields(&self) -> Option<impl Iterator<Item = (&[u8], &Self)>> {
        match &self.0 {
            ExpressionNode::Document(fields) => Some(fields.iter().map(|(name, field)| (&**name, field))),
            _ => None,
        }
    }

    /// Returns the field, if the expression is the value of a top-level field of the document.
    pub fn as_field(&self) -> Option<&FieldName> {
        match &self.0 {
            ExpressionNode::Path(Variable::Root, names) => match &**names {
                [name] => Some(name),
                _ => None,
            },
            _ => None,
        }
    }

    /// Computes the value. Fields of a document whose value is missing are left out.
    ///
    /// # Errors
    /// MongoDB's code where a value has the wrong type for an operator.
    pub fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        Ok(match &self.0 {
            ExpressionNode::Constant(None) => Evaluated::Missing,
            ExpressionNode::Constant(Some(value)) => Evaluated::Borrowed(value.as_value()),
            ExpressionNode::Path(variable, names) => match variable {
                Variable::Root => match &**names {
                    [] => Evaluated::Borrowed(Value::new(Kind::Document, env.root().bytes())),
                    [name, rest @ ..] => match env.field(name) {
                        Some(field) => path::follow(field, rest)?,
                        None => Evaluated::Missing,
                    },
                },
                Variable::Now if names.is_empty() => Evaluated::date(env.now()),
                Variable::Now => Evaluated::Missing,
                Variable::Frame(up) => match env.variable(*up) {
                    Some(value) => path::follow(value, names)?,
                    None => Evaluated::Missing,
                },
            },
            ExpressionNode::Document(fields) => {
                let mut writer = DocumentWriter::default();
                for (name, field) in &**fields {
                    work::take(1)?;
                    if let Some(value) = field.evaluate(env)?.as_value() {
                        writer.append(name, value);
                        writer.check()?;
                    }
                }
                checked(writer.finish(Kind::Document)?)?
            }
            ExpressionNode::Array(elements) => {
                let mut array = ArrayWriter::default();
                for element in &**elements {
                    work::take(1)?;
                    array.push(element.evaluate(env)?.or_null());
                    array.check()?;
                }
                checked(array.finish()?)?
            }
            ExpressionNode::Call(function, operands) => checked(function.call(operands, env)?)?,
            ExpressionNode::Operator(operator) => {
                work::take(1)?;
                checked(operator.evaluate(env)?)?
            }
        })
    }

    /// Calls `visit` with the value; `None`: the value is missing. Costs less than [`evaluate`](Self::evaluate) for a
    /// field and for a constant, which most operands are.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    #[inline]
    pub fn visit<R>(&self, env: &Env<'_>, visit: impl FnOnce(Option<Value<'_>>) -> R) -> Result<R> {
        if let Some(name) = self.as_field() {
            return Ok(visit(env.field(name)));
        }
        Ok(match &self.0 {
            ExpressionNode::Constant(value) => visit(value.as_ref().map(OwnedValue::as_value)),
            _ => visit(self.evaluate(env)?.as_value()),
        })
    }

    /// Calls `visit` with each top-level field of the document that the expression reads, and with `None` if it reads
    /// the whole document.
    pub fn visit_fields(&self, visit: &mut dyn FnMut(Option<&FieldName>)) {
        match &self.0 {
            ExpressionNode::Constant(_) => {}
            ExpressionNode::Path(Variable::Root, names) => visit(names.first()),
            ExpressionNode::Path(Variable::Now | Variable::Frame(_), _) => {}
            ExpressionNode::Document(fields) => fields.iter().for_each(|(_, field)| field.visit_fields(visit)),
            ExpressionNode::Array(operands) | ExpressionNode::Call(_, operands) => {
                operands.iter().for_each(|operand| operand.visit_fields(visit));
            }
            ExpressionNode::Operator(operator) => {
                operator.operands().into_iter().for_each(|operand| operand.visit_fields(visit));
            }
        }
    }
}
