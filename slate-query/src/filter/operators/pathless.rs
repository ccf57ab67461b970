//! Operators on whole documents that Slate does not offer: each refuses what MongoDB refuses, then itself by name.

use super::super::{
    Node,
    parse::{Clause, Subject},
};
use crate::{Code, Error, Result, number::Number, raw::Kind};

/// `$ref`, `$id` and `$db`, the fields of a reference: they stand for themselves.
pub(super) fn reference(clause: Clause<'_>) -> Result<Option<Node>> {
    let path = crate::path::Path::parse(clause.name)?;
    super::equal::node(Clause { path: &path, ..clause }).map(Some)
}

pub(super) fn expr(clause: Clause<'_>) -> Result<Option<Node>> {
    unsupported_on_document(clause)
}

pub(super) fn text(clause: Clause<'_>) -> Result<Option<Node>> {
    unsupported_on_document(clause)
}

pub(super) fn where_(clause: Clause<'_>) -> Result<Option<Node>> {
    unsupported_on_document(clause)
}

pub(super) fn where_on_field(clause: Clause<'_>) -> Result<Option<Node>> {
    Err(clause.refuse("$where cannot be applied to a field"))
}

pub(super) fn json_schema(clause: Clause<'_>) -> Result<Option<Node>> {
    if clause.operand.kind() != Kind::Document {
        return Err(clause.refuse_with(Code::TYPE_MISMATCH, "$jsonSchema must be an object"));
    }
    Err(Error::unsupported(clause.name))
}

pub(super) fn sample_rate(clause: Clause<'_>) -> Result<Option<Node>> {
    on_document(clause)?;
    let rate = Number::of(clause.operand)
        .ok_or_else(|| clause.refuse("argument to $sampleRate must be a numeric type"))?
        .to_f64();
    if !(0.0..=1.0).contains(&rate) {
        return Err(clause.refuse("numeric argument to $sampleRate must be in [0, 1]"));
    }
    Err(Error::unsupported(clause.name))
}

fn unsupported_on_document(clause: Clause<'_>) -> Result<Option<Node>> {
    on_document(clause)?;
    Err(Error::unsupported(clause.name))
}

fn on_document(clause: Clause<'_>) -> Result<()> {
    match clause.scope.subject {
        Subject::Document => Ok(()),
        Subject::Element => {
            Err(clause.refuse(format!("{} can only be applied to the top-level document", clause.name)))
        }
    }
}
