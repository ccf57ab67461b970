//! Operators that Slate does not support. An invalid use fails with MongoDB's error, a valid one with the operator's
//! name.

use super::super::{
    Node,
    clause::{Clause, Subject},
};
use crate::{Error, Result};

pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    Err(clause.locate(Error::unsupported(clause.name)))
}

/// Refuses an operator that MongoDB allows on whole documents only.
pub(super) fn on_document(clause: Clause<'_>) -> Result<Option<Node>> {
    match clause.scope.subject {
        Subject::Document => Err(Error::unsupported(clause.name)),
        Subject::Element => {
            Err(clause.refuse(format!("{} can only be applied to the top-level document", clause.name)))
        }
    }
}

pub(super) fn where_on_field(clause: Clause<'_>) -> Result<Option<Node>> {
    Err(clause.refuse("$where cannot be applied to a field"))
}
