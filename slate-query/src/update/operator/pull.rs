//! `$pull`.

use super::{Creates, Operator};
use crate::{
    Code, Error, Result,
    filter::Filter,
    order,
    raw::{Doc, Kind, OwnedValue, Value, Writer},
    update::{
        apply::{Outcome, Scope},
        missing::digits,
    },
};

/// Which elements go.
#[derive(Debug)]
enum Pull {
    /// Documents that satisfy a filter.
    Documents(Filter),
    /// Values that satisfy a filter on the empty name, under which they are put.
    Values(Filter),
    /// Values that are equal to one.
    Equal(OwnedValue),
}

pub(super) fn parse(argument: Value<'_>) -> Result<Box<dyn Operator>> {
    let is_operator = |doc: Doc<'_>| doc.elements().next().is_some_and(|first| is_value_operator(first.name));
    Ok(Box::new(match argument.as_document() {
        Some(filter) if !is_operator(filter) => Pull::Documents(Filter::parse(filter)?),
        Some(_) => Pull::Values(parse_values(argument)?),
        None if argument.kind() == Kind::Regex => Pull::Values(parse_values(argument)?),
        None => Pull::Equal(argument.to_owned()),
    }))
}

fn parse_values(condition: Value<'_>) -> Result<Filter> {
    Filter::parse(Doc::new(&under_no_name(condition)))
}

fn under_no_name(value: Value<'_>) -> Vec<u8> {
    let mut document = Writer::new();
    document.append(b"", value);
    document.finish()
}

/// Whether a name is an operator on values, so that a condition which begins with it is about elements themselves.
fn is_value_operator(name: &[u8]) -> bool {
    /// Sorted. Those that no filter takes yet are here too, so that the filter refuses them by name.
    const OPERATORS: [&str; 28] = [
        "$all",
        "$bitsAllClear",
        "$bitsAllSet",
        "$bitsAnyClear",
        "$bitsAnySet",
        "$elemMatch",
        "$eq",
        "$exists",
        "$geoIntersects",
        "$geoNear",
        "$geoWithin",
        "$gt",
        "$gte",
        "$in",
        "$lt",
        "$lte",
        "$mod",
        "$ne",
        "$near",
        "$nearSphere",
        "$nin",
        "$not",
        "$options",
        "$regex",
        "$size",
        "$type",
        "$uniqueDocs",
        "$within",
    ];
    std::str::from_utf8(name).is_ok_and(|name| OPERATORS.binary_search(&name).is_ok())
}

impl Pull {
    fn takes(&self, element: Value<'_>) -> bool {
        match self {
            Self::Documents(filter) => element.as_document().is_some_and(|document| filter.matches(document)),
            Self::Values(filter) => filter.matches(Doc::new(&under_no_name(element))),
            Self::Equal(value) => order::equal(value.as_value(), element),
        }
    }
}

impl Operator for Pull {
    fn update(&self, name: &[u8], value: Value<'_>, _scope: &Scope<'_>, out: &mut Writer) -> Result<Outcome> {
        cull(name, value, out, |element| self.takes(element))
    }

    fn creates(&self) -> Creates {
        Creates::Nothing
    }
}

/// Writes an array without the elements that `takes` names.
pub(super) fn cull(
    name: &[u8],
    value: Value<'_>,
    out: &mut Writer,
    takes: impl Fn(Value<'_>) -> bool,
) -> Result<Outcome> {
    let array = value.as_array().ok_or_else(|| {
        let message = format!("cannot apply $pull to a value of type {}", value.kind().alias());
        Error::new(Code::BAD_VALUE, message)
    })?;
    let checkpoint = out.checkpoint();
    let mut outcome = Outcome::Unchanged;
    out.open_array(name);
    let mut length = 0;
    for element in array.values() {
        if takes(element) {
            outcome = Outcome::Changed;
        } else {
            out.append(digits(length).as_bytes(), element);
            length += 1;
        }
    }
    match outcome {
        Outcome::Changed => out.close(),
        Outcome::Unchanged | Outcome::Removed => out.rollback(checkpoint),
    }
    Ok(outcome)
}
