//! `$pull`: removes the elements that match a condition.

use super::contract::{Creates, Operator};
use crate::{
    Code, Error, Result,
    collation::{Collation, compare},
    filter::{Filter, is_value_operator},
    order,
    raw::{Doc, Kind, OwnedValue, Value, Writer, digits},
    update::scope::{UpdateOutcome, UpdateScope},
    work,
};

/// Which elements to remove.
#[derive(Debug)]
enum Pull {
    /// Documents that match a filter.
    Documents(Filter),
    /// Values that match a filter on the empty path when they are wrapped; see [`wrap`].
    Values(Filter),
    /// Values that are equal to this one.
    Equal(OwnedValue, Option<Collation>),
}

pub(super) fn parse(argument: Value<'_>, collation: Option<&Collation>) -> Result<Box<dyn Operator>> {
    let is_operator = |doc: Doc<'_>| doc.elements().next().is_some_and(|first| is_value_operator(first.name));
    Ok(Box::new(match argument.as_document() {
        Some(filter) if !is_operator(filter) => Pull::Documents(Filter::parse_part(filter, collation)?),
        None if argument.kind() != Kind::Regex => Pull::Equal(argument.to_owned(), collation.cloned()),
        Some(_) | None => Pull::Values(Filter::parse_part(Doc::new(&wrap(argument)), collation)?),
    }))
}

/// Returns a document whose only field has an empty name and this value.
fn wrap(value: Value<'_>) -> Vec<u8> {
    let mut document = Writer::new();
    document.append(b"", value);
    document.finish()
}

impl Pull {
    fn matches(&self, element: Value<'_>) -> Result<bool> {
        match self {
            Self::Documents(filter) => element.as_document().map_or(Ok(false), |document| filter.evaluate(document)),
            Self::Values(filter) => filter.evaluate(Doc::new(&wrap(element))),
            Self::Equal(value, None) => Ok(order::equal(value.as_value(), element)),
            Self::Equal(value, collation) => Ok(compare(collation.as_ref(), value.as_value(), element).is_eq()),
        }
    }
}

impl Operator for Pull {
    fn update(&self, name: &[u8], value: Value<'_>, _: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        remove_elements(name, value, out, |element| self.matches(element))
    }

    fn creates(&self) -> Creates {
        Creates::Nothing
    }
}

/// Writes an array without the elements for which `is_removed` is true; writes nothing if there are none.
pub(super) fn remove_elements(
    name: &[u8],
    value: Value<'_>,
    out: &mut Writer,
    is_removed: impl Fn(Value<'_>) -> Result<bool>,
) -> Result<UpdateOutcome> {
    let array = value.as_array().ok_or_else(|| {
        let message = format!("cannot apply $pull to a value of type {}", value.kind().alias());
        Error::new(Code::BAD_VALUE, message)
    })?;
    let checkpoint = out.checkpoint();
    let mut outcome = UpdateOutcome::Unchanged;
    out.open_array(name);
    let mut length = 0;
    for element in array.values() {
        work::take(1 + work::of_bytes(element.bytes().len()))?;
        if is_removed(element)? {
            outcome = UpdateOutcome::Changed;
        } else {
            out.append(digits(length).as_bytes(), element);
            length += 1;
        }
    }
    match outcome {
        UpdateOutcome::Changed => out.close(),
        UpdateOutcome::Unchanged | UpdateOutcome::Removed => out.rollback(checkpoint),
    }
    Ok(outcome)
}
