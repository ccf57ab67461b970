//! Comparisons of a field with a value that is the same for every document, for which an index can find the documents.

use super::{
    Evaluated, Expression,
    node::{ExpressionNode, Variable},
};
use crate::raw::FieldName;

/// How the value of a field compares with another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// Is an element of the other value.
    In,
}

impl Relation {
    fn of(operator: &str) -> Option<Self> {
        Some(match operator {
            "$eq" => Self::Equal,
            "$lt" => Self::Less,
            "$lte" => Self::LessOrEqual,
            "$gt" => Self::Greater,
            "$gte" => Self::GreaterOrEqual,
            "$in" => Self::In,
            _ => return None,
        })
    }

    /// Returns the relation of the second operand to the first; `None` for [`In`](Self::In).
    fn reversed(self) -> Option<Self> {
        Some(match self {
            Self::Equal => Self::Equal,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::In => return None,
        })
    }
}

/// A comparison of a field of the document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comparison<'e> {
    /// The path of the field, in names.
    pub(crate) field: &'e [FieldName],
    pub(crate) relation: Relation,
    pub(crate) other: &'e Expression,
}

/// An expression whose truth follows from the truth of its operands.
#[derive(Debug)]
pub(crate) enum Logic<'e> {
    /// `$and`: true if all operands are true.
    All(Vec<&'e Expression>),
    /// `$or`: true if one operand is true.
    Any(Vec<&'e Expression>),
    /// A constant that is not true.
    Never,
}

impl Expression {
    /// Returns the expression as "and", "or" or never true; `None` for any other.
    pub(crate) fn logic(&self) -> Option<Logic<'_>> {
        match &self.0 {
            ExpressionNode::Operator(operator) => operator.logic(),
            ExpressionNode::Constant(value) => {
                let is_true = value.as_ref().is_some_and(|value| Evaluated::Borrowed(value.as_value()).is_true());
                (!is_true).then_some(Logic::Never)
            }
            _ => None,
        }
    }

    /// Returns this expression as comparisons of a field: one for each operand that is a field, and none unless it is
    /// a comparison.
    pub(crate) fn comparisons(&self) -> impl Iterator<Item = Comparison<'_>> {
        let call = match &self.0 {
            ExpressionNode::Call(function, operands) => Some((function.name, &**operands)),
            ExpressionNode::Operator(operator) => operator.as_call(),
            _ => None,
        };
        let compared = call.and_then(|(name, operands)| match (Relation::of(name), operands) {
            (Some(relation), [left, right]) => Some((relation, left, right)),
            _ => None,
        });
        compared.into_iter().flat_map(|(relation, left, right)| {
            let of_left = left.as_path().map(|field| Comparison { field, relation, other: right });
            let of_right = right.as_path().zip(relation.reversed());
            let of_right = of_right.map(|(field, relation)| Comparison { field, relation, other: left });
            of_left.into_iter().chain(of_right)
        })
    }

    /// Returns whether the value is the same for every document of an operation.
    pub(crate) fn is_invariant(&self) -> bool {
        match &self.0 {
            ExpressionNode::Constant(_) | ExpressionNode::Path(Variable::Now | Variable::Frame(_), _) => true,
            ExpressionNode::Path(Variable::Root, _) => false,
            ExpressionNode::Document(fields) => fields.iter().all(|(_, field)| field.is_invariant()),
            ExpressionNode::Array(operands) | ExpressionNode::Call(_, operands) => {
                operands.iter().all(Self::is_invariant)
            }
            ExpressionNode::Operator(operator) => {
                operator.is_repeatable() && operator.operands().into_iter().all(Self::is_invariant)
            }
        }
    }

    /// Returns the path, if the expression is the value of a field of the document.
    fn as_path(&self) -> Option<&[FieldName]> {
        match &self.0 {
            ExpressionNode::Path(Variable::Root, names) if !names.is_empty() => Some(names),
            _ => None,
        }
    }
}
