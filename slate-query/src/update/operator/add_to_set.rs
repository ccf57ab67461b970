//! `$addToSet`: appends values that the array does not contain.

use super::{Operator, depth};
use crate::{
    Code, Error, Result, order,
    raw::{Doc, Kind, OwnedValue, Value, Writer},
    update::{
        apply::{Outcome, Scope},
        missing::digits,
    },
};

#[derive(Debug)]
struct AddToSet {
    /// Without repetitions.
    values: Vec<OwnedValue>,
    depth: usize,
}

pub(super) fn parse(argument: Value<'_>) -> Result<Box<dyn Operator>> {
    let mut values = Vec::<OwnedValue>::new();
    let mut deepest = 0;
    let mut add = |value: Value<'_>| {
        deepest = deepest.max(1 + depth(value));
        if !values.iter().any(|other| order::equal(other.as_value(), value)) {
            values.push(value.to_owned());
        }
    };
    match each(argument)? {
        Some(each) => each.values().for_each(add),
        None => add(argument),
    }
    Ok(Box::new(AddToSet { values, depth: deepest }))
}

/// The values of `{$each: […]}`, if the argument begins with `$each`.
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
    fn update(&self, name: &[u8], value: Value<'_>, _scope: &Scope<'_>, out: &mut Writer) -> Result<Outcome> {
        let array = value.as_array().ok_or_else(|| {
            let message = format!("$addToSet acts on an array, not on a value of type {}", value.kind().alias());
            Error::new(Code::BAD_VALUE, message)
        })?;
        let is_new = |value: &&OwnedValue| !array.values().any(|other| order::equal(other, value.as_value()));
        let mut new = self.values.iter().filter(is_new).peekable();
        if new.peek().is_none() {
            return Ok(Outcome::Unchanged);
        }
        out.open_array(name);
        for (position, value) in array.values().chain(new.map(OwnedValue::as_value)).enumerate() {
            out.append(digits(position).as_bytes(), value);
        }
        out.close();
        Ok(Outcome::Changed)
    }

    fn create(&self, name: &[u8], scope: &Scope<'_>, out: &mut Writer) -> Result<Outcome> {
        if self.values.is_empty() {
            out.append(name, Value::new(Kind::Array, EMPTY));
            return Ok(Outcome::Changed);
        }
        self.update(name, Value::new(Kind::Array, EMPTY), scope, out)
    }

    fn depth(&self) -> usize {
        self.depth
    }
}

/// The bytes of an empty array.
pub(super) const EMPTY: &[u8] = &[5, 0, 0, 0, 0];
