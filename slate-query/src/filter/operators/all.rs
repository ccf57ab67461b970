use super::{
    super::{Node, clause::Clause},
    elem_match, equal, is_value_operator, regex,
};
use crate::{
    Result,
    raw::{Doc, Kind, Value},
};

/// Parses `$all`: every operand (a value, a regular expression or an `$elemMatch`) matches the value or one of its
/// elements.
pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    let operands = clause.operand.as_array().ok_or_else(|| clause.refuse("$all needs an array"))?;
    let elem_matches = operands.values().next().is_some_and(|first| elem_match_of(first).is_some());
    let node = |operand: Value<'_>| {
        let inner = Clause { operand, ..clause };
        if elem_matches {
            let operand =
                elem_match_of(operand).ok_or_else(|| clause.refuse("$all/$elemMatch has to be consistent"))?;
            return elem_match::node(Clause { operand, ..clause });
        }
        if operand.as_document().is_some_and(is_operator) {
            return Err(clause.refuse("no $ expressions in $all"));
        }
        if operand.kind() == Kind::Regex { regex::of_value(inner) } else { equal::node(inner) }
    };
    let nodes = operands.values().map(node).collect::<Result<Vec<_>>>()?;
    // As in MongoDB, an empty list matches nothing.
    Ok(Some(if nodes.is_empty() { Node::never() } else { Node::all(nodes) }))
}

/// Returns whether MongoDB reads this operand of `$all` as an operator expression, such as `{$gt: 5}`, which `$all`
/// refuses, instead of a literal document. One that begins with `$not` is a literal here.
fn is_operator(operand: Doc<'_>) -> bool {
    let first = operand.elements().next();
    first.is_some_and(|first| is_value_operator(first.name) && first.name != b"$not")
}

/// Returns the operand of `$elemMatch`; `None` unless that is the first field of a document.
fn elem_match_of(operand: Value<'_>) -> Option<Value<'_>> {
    let first = operand.as_document()?.elements().next()?;
    (first.name == b"$elemMatch").then_some(first.value)
}
