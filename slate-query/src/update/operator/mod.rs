//! Update operators, and the table of them.

mod add_to_set;
mod arithmetic;
mod bit;
mod compare;
mod current_date;
mod integer;
mod pop;
mod pull;
mod pull_all;
mod push;
mod rename;
mod set;
mod sort;
mod unset;

use std::fmt;

pub(super) use rename::{Destination, Source, parse as parse_rename};

use super::apply::{Outcome, Scope};
use crate::{
    Code, Error, Result,
    raw::{Value, Writer},
};

/// What an operator does at one place.
pub(super) trait Operator: fmt::Debug + Send + Sync {
    /// Writes the successor of a value under `name`, if it changes; nothing if it stays or goes.
    fn update(&self, name: &[u8], value: Value<'_>, scope: &Scope<'_>, out: &mut Writer) -> Result<Outcome>;

    /// Writes a field that is missing, if the operator makes one.
    fn create(&self, _name: &[u8], _scope: &Scope<'_>, _out: &mut Writer) -> Result<Outcome> {
        Ok(Outcome::Unchanged)
    }

    /// Refuses, or not, a place below a value that can hold no such field.
    fn blocked(&self, _scope: &Scope<'_>) -> Result<()> {
        Err(Error::new(Code::PATH_NOT_VIABLE, "the path goes through a value that cannot hold such a field"))
    }

    /// Whether it writes fields that are missing.
    fn creates(&self) -> Creates {
        Creates::Fields
    }

    /// By how many levels, at most, what it writes nests: 0 for scalars.
    fn depth(&self) -> usize {
        0
    }
}

/// What an operator makes of a missing field. Those that make nothing also act where a field could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Creates {
    Fields,
    Nothing,
}

/// How the argument of an operator's field is understood.
#[derive(Clone, Copy)]
pub(super) enum Grammar {
    /// An operator on the field.
    Field(Parse),
    /// An operator on the field that acts where the document is being inserted.
    FieldOnInsert(Parse),
    /// Two operators, on the field and on the one that the argument names.
    Rename,
}

type Parse = fn(Value<'_>) -> Result<Box<dyn Operator>>;

/// Sorted by name.
static OPERATORS: [(&str, Grammar); 15] = [
    ("$addToSet", Grammar::Field(add_to_set::parse)),
    ("$bit", Grammar::Field(bit::parse)),
    ("$currentDate", Grammar::Field(current_date::parse)),
    ("$inc", Grammar::Field(arithmetic::parse_inc)),
    ("$max", Grammar::Field(compare::parse_max)),
    ("$min", Grammar::Field(compare::parse_min)),
    ("$mul", Grammar::Field(arithmetic::parse_mul)),
    ("$pop", Grammar::Field(pop::parse)),
    ("$pull", Grammar::Field(pull::parse)),
    ("$pullAll", Grammar::Field(pull_all::parse)),
    ("$push", Grammar::Field(push::parse)),
    ("$rename", Grammar::Rename),
    ("$set", Grammar::Field(set::parse)),
    ("$setOnInsert", Grammar::FieldOnInsert(set::parse)),
    ("$unset", Grammar::Field(unset::parse)),
];

/// The grammar of an operator.
///
/// # Errors
/// `FailedToParse` (9) for a name that is none.
pub(super) fn grammar(name: &str) -> Result<Grammar> {
    match OPERATORS.binary_search_by_key(&name, |(name, _)| name) {
        Ok(place) => OPERATORS.get(place).map(|(_, grammar)| *grammar),
        Err(_) => None,
    }
    .ok_or_else(|| Error::new(Code::FAILED_TO_PARSE, format!("unknown modifier: {name}")).at(name))
}

/// How deep a value nests: 0 for a scalar.
fn depth(value: Value<'_>) -> usize {
    let inner = value.as_container().into_iter().flat_map(|container| container.values()).map(depth).max();
    value.as_container().map_or(0, |_| 1 + inner.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(OPERATORS.is_sorted_by_key(|(name, _)| *name));
    }
}
