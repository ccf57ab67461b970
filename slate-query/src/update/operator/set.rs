//! `$set` and `$setOnInsert`: set a value.

use super::contract::{Operator, depth};
use crate::{
    Result,
    raw::{OwnedValue, Value, Writer},
    update::scope::{UpdateOutcome, UpdateScope},
};

#[derive(Debug)]
struct Set {
    value: OwnedValue,
    depth: usize,
}

pub(super) fn parse(argument: Value<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Set { value: argument.to_owned(), depth: depth(argument) }))
}

impl Operator for Set {
    fn update(
        &self,
        name: &[u8],
        value: Value<'_>,
        scope: &UpdateScope<'_>,
        out: &mut Writer,
    ) -> Result<UpdateOutcome> {
        // Compares bytes, because a value of another type is a change even if it is equal.
        if value == self.value.as_value() { Ok(UpdateOutcome::Unchanged) } else { self.create(name, scope, out) }
    }

    fn create(&self, name: &[u8], _: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        out.append(name, self.value.as_value());
        Ok(UpdateOutcome::Changed)
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
