use super::super::{Node, clause::Clause, parse};
use crate::Result;

pub(super) fn and(clause: Clause<'_>) -> Result<Option<Node>> {
    nodes(clause).map(|nodes| Some(Node::all(nodes)))
}

pub(super) fn or(clause: Clause<'_>) -> Result<Option<Node>> {
    nodes(clause).map(|nodes| Some(Node::any(nodes)))
}

/// Parses `$nor`: none of the filters matches.
pub(super) fn nor(clause: Clause<'_>) -> Result<Option<Node>> {
    nodes(clause).map(|nodes| Some(Node::all(nodes.into_iter().map(Node::negated).collect())))
}

fn nodes(clause: Clause<'_>) -> Result<Vec<Node>> {
    let array = clause.operand.as_array().ok_or_else(|| clause.refuse(format!("{} must be an array", clause.name)))?;
    if array.is_empty() {
        return Err(clause.refuse("$and/$or/$nor must be a nonempty array"));
    }
    let entry = |value: crate::raw::Value<'_>| {
        let document =
            value.as_document().ok_or_else(|| clause.refuse("$or/$and/$nor entries need to be full objects"))?;
        parse::document(document, clause.scope)
    };
    array.values().map(entry).collect()
}
