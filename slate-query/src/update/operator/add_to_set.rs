//! `$addToSet`: appends values that the array does not contain.

use super::contract::{Operator, depth};
use crate::{
    Code, Error, Result,
    collation::{Collation, Compared},
    order,
    raw::{Doc, Kind, OwnedValue, Value, Writer, digits},
    update::scope::{UpdateOutcome, UpdateScope},
    value_set::{AsValue as _, ValueSet},
    work,
};

/// Up to this number of values, searching the array for each value is faster than sorting the array.
const FEW: usize = 8;

#[derive(Debug)]
struct AddToSet {
    /// Without repetitions.
    values: Vec<OwnedValue>,
    collation: Option<Collation>,
    depth: usize,
}

pub(super) fn parse(argument: Value<'_>, collation: Option<&Collation>) -> Result<Box<dyn Operator>> {
    let compared = |value| Compared::new(collation, value);
    let mut values: Vec<(usize, Compared<'_>)> = match each(argument)? {
        Some(each) => each.values().map(compared).enumerate().collect(),
        None => vec![(0, compared(argument))],
    };
    let depth = values.iter().map(|(_, compared)| 1 + depth(compared.value)).max().unwrap_or_default();
    // The first of equal values remains, at its position.
    work::sort_by(&mut values, |(_, a), (_, b)| order::compare(a.as_value(), b.as_value()));
    values.dedup_by(|(_, a), (_, b)| order::equal(a.as_value(), b.as_value()));
    work::sort_by(&mut values, |(a, _), (b, _)| a.cmp(b));
    let values = values.iter().map(|(_, compared)| compared.value.to_owned()).collect();
    Ok(Box::new(AddToSet { values, collation: collation.cloned(), depth }))
}

/// Returns the values of `{$each: […]}`, if the argument begins with `$each`.
fn each(argument: Value<'_>) -> Result<Option<Doc<'_>>> {
    let mut fields = argument.as_document().into_iter().flat_map(Doc::elements);
    let Some(first) = fields.next().filter(|first| first.name == b"$each") else { return Ok(None) };
    let values = first.value.as_array().ok_or_else(|| {
        let message = format!("the argument to $each in $addToSet is an array, not a {}", first.value.kind().alias());
        Error::new(Code::TYPE_MISMATCH, message)
    })?;
    match fields.next() {
        None => Ok(Some(values)),
        Some(other) => {
            let message = format!("unexpected field after $each in $addToSet: {}", other.display_name());
            Err(Error::new(Code::BAD_VALUE, message))
        }
    }
}

impl Operator for AddToSet {
    fn update(&self, name: &[u8], value: Value<'_>, _: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        let array = value.as_array().ok_or_else(|| {
            let message = format!("$addToSet acts on an array, not on a value of type {}", value.kind().alias());
            Error::new(Code::BAD_VALUE, message)
        })?;
        // A few values are searched for in the array itself, many in a set of its elements.
        let collation = self.collation.as_ref();
        let is_searched = self.values.len() <= FEW && collation.is_none();
        let elements: Option<ValueSet<_>> =
            (!is_searched).then(|| array.values().map(|element| Compared::new(collation, element)).collect());
        let is_new = |value: &&OwnedValue| match &elements {
            Some(elements) => !elements.contains(Compared::new(collation, value.as_value()).as_value()),
            None => !array.values().any(|element| order::equal(element, value.as_value())),
        };
        let mut new = self.values.iter().filter(is_new).peekable();
        if new.peek().is_none() {
            return Ok(UpdateOutcome::Unchanged);
        }
        out.open_array(name);
        for (position, value) in array.values().chain(new.map(OwnedValue::as_value)).enumerate() {
            out.append(digits(position).as_bytes(), value);
        }
        out.close();
        Ok(UpdateOutcome::Changed)
    }

    fn create(&self, name: &[u8], scope: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        if self.values.is_empty() {
            out.append(name, Value::new(Kind::Array, Doc::EMPTY.bytes()));
            return Ok(UpdateOutcome::Changed);
        }
        self.update(name, Value::new(Kind::Array, Doc::EMPTY.bytes()), scope, out)
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
