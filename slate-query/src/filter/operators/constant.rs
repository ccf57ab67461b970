use super::super::{
    Node,
    clause::{Clause, integer},
};
use crate::{Code, Result};

/// Parses `$comment`, which adds no condition.
pub(super) fn comment(_clause: Clause<'_>) -> Result<Option<Node>> {
    Ok(None)
}

pub(super) fn always_true(clause: Clause<'_>) -> Result<Option<Node>> {
    one(clause)?;
    Ok(Some(Node::all(Vec::new())))
}

pub(super) fn always_false(clause: Clause<'_>) -> Result<Option<Node>> {
    one(clause)?;
    Ok(Some(Node::never()))
}

fn one(clause: Clause<'_>) -> Result<()> {
    match integer(clause.operand)? {
        1 => Ok(()),
        _ => Err(clause.refuse_with(Code::FAILED_TO_PARSE, format!("{} must be an integer value of 1", clause.name))),
    }
}
