//! `$min` and `$max`: replace a value by a lower or a higher one.

use std::cmp::Ordering;

use super::contract::{Operator, depth};
use crate::{
    Result,
    collation::{Collation, compare},
    raw::{OwnedValue, Value, Writer},
    update::scope::{UpdateOutcome, UpdateScope},
};

#[derive(Debug)]
struct MinOrMax {
    value: OwnedValue,
    collation: Option<Collation>,
    depth: usize,
    /// The argument replaces the current value if comparing the argument with the value gives this order.
    replaces: Ordering,
}

pub(super) fn parse_min(argument: Value<'_>, collation: Option<&Collation>) -> Result<Box<dyn Operator>> {
    parse(argument, collation, Ordering::Less)
}

pub(super) fn parse_max(argument: Value<'_>, collation: Option<&Collation>) -> Result<Box<dyn Operator>> {
    parse(argument, collation, Ordering::Greater)
}

fn parse(argument: Value<'_>, collation: Option<&Collation>, replaces: Ordering) -> Result<Box<dyn Operator>> {
    let collation = collation.cloned();
    Ok(Box::new(MinOrMax { value: argument.to_owned(), collation, depth: depth(argument), replaces }))
}

impl Operator for MinOrMax {
    fn update(
        &self,
        name: &[u8],
        value: Value<'_>,
        scope: &UpdateScope<'_>,
        out: &mut Writer,
    ) -> Result<UpdateOutcome> {
        if compare(self.collation.as_ref(), self.value.as_value(), value) == self.replaces {
            self.create(name, scope, out)
        } else {
            Ok(UpdateOutcome::Unchanged)
        }
    }

    fn create(&self, name: &[u8], _: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        out.append(name, self.value.as_value());
        Ok(UpdateOutcome::Changed)
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
