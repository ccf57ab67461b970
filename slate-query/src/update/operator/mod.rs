//! The update operators, one file per family, and the table of their names.
//!
//! A new operator is a file here, which implements [`Operator`], with its `mod` line and its line in [`OPERATORS`].

mod add_to_set;
mod arithmetic;
mod bit;
mod compare;
mod contract;
mod current_date;
mod integer;
mod pop;
mod pull;
mod pull_all;
mod push;
mod rename;
mod set;
mod unset;

pub(super) use contract::{Creates, Operator};
pub(super) use rename::{Destination, parse as parse_rename};
pub(super) use unset::Unset;

use crate::{Code, Error, Result, collation::Collation, raw::Value};

/// How the argument of an operator is interpreted.
#[derive(Clone, Copy)]
pub(super) enum Grammar {
    /// An operator on the field.
    Field(ParseUpdate),
    /// An operator on the field that compares values, by a collation if there is one.
    Comparing(ParseComparing),
    /// An operator on the field that applies only if the document is being inserted.
    FieldOnInsert(ParseUpdate),
    /// Two operators: one on the field, one on the field that the argument names.
    Rename,
}

type ParseUpdate = fn(Value<'_>) -> Result<Box<dyn Operator>>;
type ParseComparing = fn(Value<'_>, Option<&Collation>) -> Result<Box<dyn Operator>>;

/// Sorted by name.
static OPERATORS: &[(&str, Grammar)] = &[
    ("$addToSet", Grammar::Comparing(add_to_set::parse)),
    ("$bit", Grammar::Field(bit::parse)),
    ("$currentDate", Grammar::Field(current_date::parse)),
    ("$inc", Grammar::Field(arithmetic::parse_inc)),
    ("$max", Grammar::Comparing(compare::parse_max)),
    ("$min", Grammar::Comparing(compare::parse_min)),
    ("$mul", Grammar::Field(arithmetic::parse_mul)),
    ("$pop", Grammar::Field(pop::parse)),
    ("$pull", Grammar::Comparing(pull::parse)),
    ("$pullAll", Grammar::Comparing(pull_all::parse)),
    ("$push", Grammar::Comparing(push::parse)),
    ("$rename", Grammar::Rename),
    ("$set", Grammar::Field(set::parse)),
    ("$setOnInsert", Grammar::FieldOnInsert(set::parse)),
    ("$unset", Grammar::Field(unset::parse)),
];

/// Returns the names of the operators, and of the modifiers of `$push`.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().map(|(name, _)| *name).chain(push::MODIFIERS)
}

/// Finds an operator.
///
/// # Errors
/// `FailedToParse` (9) for an unknown name.
pub(super) fn grammar(name: &str) -> Result<Grammar> {
    match OPERATORS.binary_search_by_key(&name, |(name, _)| name) {
        Ok(place) => OPERATORS.get(place).map(|(_, grammar)| *grammar),
        Err(_) => None,
    }
    .ok_or_else(|| Error::new(Code::FAILED_TO_PARSE, format!("unknown modifier: {name}")).at(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(OPERATORS.is_sorted_by_key(|(name, _)| *name));
    }
}
