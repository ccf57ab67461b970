//! The update operators, one file per family, and the table of their names.
//!
//! A new operator is a file here, which implements [`Operator`], with its `mod` line and its line in [`OPERATORS`].

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
pub(crate) mod sort;
mod unset;

use std::fmt;

pub(super) use rename::{Destination, parse as parse_rename};
pub(super) use unset::Unset;

use super::apply::{Outcome, Scope};
use crate::{
    Code, Error, Result,
    collation::Collation,
    raw::{Value, Writer},
};

/// An update operator with its argument.
pub(super) trait Operator: fmt::Debug + Send + Sync {
    /// Writes the new value under `name` if it changes; writes nothing if it is unchanged or removed.
    fn update(&self, name: &[u8], value: Value<'_>, scope: &Scope<'_>, out: &mut Writer) -> Result<Outcome>;

    /// Writes a missing field, if the operator creates one.
    fn create(&self, _name: &[u8], _scope: &Scope<'_>, _out: &mut Writer) -> Result<Outcome> {
        Ok(Outcome::Unchanged)
    }

    /// Decides whether it is an error that a value in the middle of the path cannot have fields.
    fn blocked(&self, _scope: &Scope<'_>) -> Result<()> {
        Err(Error::new(Code::PATH_NOT_VIABLE, "the path goes through a value that cannot hold such a field"))
    }

    /// Returns whether the operator creates missing fields.
    fn creates(&self) -> Creates {
        Creates::Fields
    }

    /// Returns an upper bound of the nesting depth of the values that the operator writes: 0 for scalars.
    fn depth(&self) -> usize {
        0
    }
}

/// Whether an operator creates missing fields. One that does not is also applied where the field could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Creates {
    Fields,
    Nothing,
}

/// How the argument of an operator is interpreted.
#[derive(Clone, Copy)]
pub(super) enum Grammar {
    /// An operator on the field.
    Field(Parse),
    /// An operator on the field that compares values, by a collation if there is one.
    Comparing(ParseComparing),
    /// An operator on the field that applies only if the document is being inserted.
    FieldOnInsert(Parse),
    /// Two operators: one on the field, one on the field that the argument names.
    Rename,
}

type Parse = fn(Value<'_>) -> Result<Box<dyn Operator>>;
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

/// Returns the nesting depth of a value: 0 for a scalar.
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

    #[test]
    fn the_page_lists_every_name() {
        let page = include_str!("../../../../docs/operators.md");
        let missing: Vec<&str> =
            OPERATORS.iter().map(|(name, _)| *name).filter(|name| !page.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "docs/operators.md lacks {missing:?}");
    }
}
