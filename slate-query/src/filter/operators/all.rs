use super::{
    super::{
        Node,
        parse::{Clause, begins_with_operator},
    },
    elem_match, equal, regex,
};
use crate::{
    Result,
    raw::{Kind, Value},
};

/// `$all`: each operand, for itself, is equal to the value or to an element of it, or matches, or finds its element.
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
        if operand.as_document().is_some_and(begins_with_operator) {
            return Err(clause.refuse("no $ expressions in $all"));
        }
        if operand.kind() == Kind::Regex { regex::of_value(inner) } else { equal::node(inner) }
    };
    let nodes = operands.values().map(node).collect::<Result<Vec<_>>>()?;
    // Of no operands, MongoDB has it that nothing matches.
    Ok(Some(if nodes.is_empty() { Node::never() } else { Node::all(nodes) }))
}

/// The operand of `{$elemMatch: …}`.
fn elem_match_of(operand: Value<'_>) -> Option<Value<'_>> {
    let first = operand.as_document()?.elements().next()?;
    (first.name == b"$elemMatch").then_some(first.value)
}
