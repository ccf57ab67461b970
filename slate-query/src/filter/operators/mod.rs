//! The operators of filters, one file per family, and the table of their names.
//!
//! The table serves filters, `$elemMatch`, `$all`, `$pull` and `arrayFilters`. To add an operator:
//!
//! 1. Write its file here: a type that implements [`Operator`](super::operator::Operator), and a `parse` function that
//!    checks the operand and returns `Node::field(clause.path, …)`. The trait's required methods say which values
//!    satisfy the operator, which index keys they have (`Bounds::unknown()` is always correct), and how the
//!    operator is printed. The other methods have defaults that are correct for every operator.
//! 2. Add its `mod` line and its line in [`OPERATORS`], which is sorted by name.
//! 3. Describe its behaviour in a script under `slate-core/tests/scripts/`.
//! 4. Add its line to `docs/operators.md`.
//!
//! Operators that MongoDB has and Slate does not support are also in the table, and fail by name.

mod all;
mod bits;
mod compare;
mod constant;
mod elem_match;
mod equal;
mod exists;
mod json_schema;
mod logical;
mod membership;
mod modulo;
mod negation;
mod regex;
mod sample_rate;
mod size;
mod types;
mod unsupported;

pub(super) use equal::implicit;
pub(super) use exists::node as exists;
pub(super) use membership::{equal_values, of_equalities};

use self::{bits::Test, compare::Relation};
use super::{Node, clause::Clause, computed};
use crate::{Result, raw::same};

/// Parses an operator; `None` where it adds no condition.
pub(super) type ParseClause = fn(Clause<'_>) -> Result<Option<Node>>;

/// Where an operator may be used.
#[derive(Clone, Copy)]
enum OperatorPosition {
    /// On a path: `{a: {$gt: 5}}`.
    Field(ParseClause),
    /// In place of a path: `{$and: […]}`.
    Document(ParseClause),
    /// MongoDB has the operator, Slate does not. Each parser fails: with MongoDB's error for an invalid use, otherwise
    /// with the operator's name.
    Unsupported { field: Option<ParseClause>, document: Option<ParseClause> },
}

/// An unsupported operator on a path.
const UNSUPPORTED: OperatorPosition = OperatorPosition::Unsupported { field: Some(unsupported::parse), document: None };

/// Returns an unsupported operator in place of a path.
const fn not_on_document(parse: ParseClause) -> OperatorPosition {
    OperatorPosition::Unsupported { field: None, document: Some(parse) }
}

/// All operators, sorted by name.
static OPERATORS: &[(&str, OperatorPosition)] = &[
    ("$all", OperatorPosition::Field(all::parse)),
    ("$alwaysFalse", OperatorPosition::Document(constant::always_false)),
    ("$alwaysTrue", OperatorPosition::Document(constant::always_true)),
    ("$and", OperatorPosition::Document(logical::and)),
    ("$bitsAllClear", OperatorPosition::Field(|clause| bits::parse(clause, Test::AllClear))),
    ("$bitsAllSet", OperatorPosition::Field(|clause| bits::parse(clause, Test::AllSet))),
    ("$bitsAnyClear", OperatorPosition::Field(|clause| bits::parse(clause, Test::AnyClear))),
    ("$bitsAnySet", OperatorPosition::Field(|clause| bits::parse(clause, Test::AnySet))),
    ("$comment", OperatorPosition::Document(constant::comment)),
    ("$db", OperatorPosition::Document(equal::reference)),
    ("$elemMatch", OperatorPosition::Field(elem_match::parse)),
    ("$eq", OperatorPosition::Field(equal::parse)),
    ("$exists", OperatorPosition::Field(exists::parse)),
    ("$expr", OperatorPosition::Document(computed::parse)),
    ("$geoIntersects", UNSUPPORTED),
    ("$geoNear", UNSUPPORTED),
    ("$geoWithin", UNSUPPORTED),
    ("$gt", OperatorPosition::Field(|clause| compare::parse(clause, Relation::Greater))),
    ("$gte", OperatorPosition::Field(|clause| compare::parse(clause, Relation::GreaterOrEqual))),
    ("$id", OperatorPosition::Document(equal::reference)),
    ("$in", OperatorPosition::Field(membership::parse)),
    ("$jsonSchema", OperatorPosition::Document(json_schema::parse)),
    ("$lt", OperatorPosition::Field(|clause| compare::parse(clause, Relation::Less))),
    ("$lte", OperatorPosition::Field(|clause| compare::parse(clause, Relation::LessOrEqual))),
    ("$mod", OperatorPosition::Field(modulo::parse)),
    ("$ne", OperatorPosition::Field(equal::not_equal)),
    ("$near", UNSUPPORTED),
    ("$nearSphere", UNSUPPORTED),
    ("$nin", OperatorPosition::Field(membership::none_of)),
    ("$nor", OperatorPosition::Document(logical::nor)),
    ("$not", OperatorPosition::Field(negation::parse)),
    ("$options", OperatorPosition::Field(regex::options)),
    ("$or", OperatorPosition::Document(logical::or)),
    ("$ref", OperatorPosition::Document(equal::reference)),
    ("$regex", OperatorPosition::Field(regex::parse)),
    ("$sampleRate", OperatorPosition::Document(sample_rate::parse)),
    ("$size", OperatorPosition::Field(size::parse)),
    ("$text", not_on_document(unsupported::on_document)),
    ("$type", OperatorPosition::Field(types::parse)),
    (
        "$where",
        OperatorPosition::Unsupported {
            field: Some(unsupported::where_on_field),
            document: Some(unsupported::on_document),
        },
    ),
    ("$within", UNSUPPORTED),
];

/// The prefix of operators that MongoDB's servers send to each other. Slate supports none of them.
const INTERNAL: &str = "$_internal";

fn find(name: &str) -> Option<OperatorPosition> {
    let found = OPERATORS
        .iter()
        .find(|(operator, _)| operator.len() == name.len() && same(operator.as_bytes(), name.as_bytes()));
    let internal = || {
        let parse = Some(unsupported::parse as ParseClause);
        name.starts_with(INTERNAL).then_some(OperatorPosition::Unsupported { field: parse, document: parse })
    };
    found.map(|(_, operator)| *operator).or_else(internal)
}

/// Returns the names of the supported operators.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let is_supported = |position: &OperatorPosition| !matches!(position, OperatorPosition::Unsupported { .. });
    OPERATORS.iter().filter(move |(_, position)| is_supported(position)).map(|(name, _)| *name)
}

/// Returns the parser of the operator of that name on a path; `None` if MongoDB has none.
pub(super) fn on_field(name: &str) -> Option<ParseClause> {
    match find(name)? {
        OperatorPosition::Field(parse) => Some(parse),
        OperatorPosition::Document(_) => None,
        OperatorPosition::Unsupported { field, .. } => field,
    }
}

/// Returns the parser of the operator of that name in place of a path; `None` if MongoDB has none.
pub(super) fn on_document(name: &str) -> Option<ParseClause> {
    match find(name)? {
        OperatorPosition::Document(parse) => Some(parse),
        OperatorPosition::Field(_) => None,
        OperatorPosition::Unsupported { document, .. } => document,
    }
}

/// Returns whether a document that begins with this name is a condition on a value, not a filter on a document's
/// fields.
pub(crate) fn is_value_operator(name: &[u8]) -> bool {
    let name = std::str::from_utf8(name).unwrap_or_default();
    let only_on_field = |position| {
        matches!(
            position,
            OperatorPosition::Field(_) | OperatorPosition::Unsupported { field: Some(_), document: None }
        )
    };
    find(name).is_some_and(only_on_field) || name.starts_with(INTERNAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_by_name() {
        assert!(OPERATORS.is_sorted_by_key(|(name, _)| name));
    }
}
