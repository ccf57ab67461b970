use super::{
    super::{Node, clause::Clause, parse},
    regex,
};
use crate::{Result, raw::Kind};

/// Parses `$not`: at least one of the operators does not hold.
pub(super) fn parse(clause: Clause<'_>) -> Result<Option<Node>> {
    if clause.operand.kind() == Kind::Regex {
        return regex::of_value(clause).map(|node| Some(node.negated()));
    }
    let operators = clause.operand.as_document().ok_or_else(|| clause.refuse("$not needs a regex or a document"))?;
    if operators.is_empty() {
        return Err(clause.refuse("$not cannot be empty"));
    }
    parse::field_operators(clause.path, operators, clause.scope).map(|node| Some(node.negated()))
}
