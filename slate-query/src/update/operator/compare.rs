//! `$min` and `$max`: replace a value by a lower or a higher one.

use std::cmp::Ordering;

use super::{Operator, depth};
use crate::{
    Result, order,
    raw::{OwnedValue, Value, Writer},
    update::apply::{Outcome, Scope},
};

#[derive(Debug)]
struct Bound {
    value: OwnedValue,
    depth: usize,
    /// The result of comparing the argument with the current value for which it replaces the value.
    replaces: Ordering,
}

pub(super) fn parse_min(argument: Value<'_>) -> Result<Box<dyn Operator>> {
    parse(argument, Ordering::Less)
}

pub(super) fn parse_max(argument: Value<'_>) -> Result<Box<dyn Operator>> {
    parse(argument, Ordering::Greater)
}

fn parse(argument: Value<'_>, replaces: Ordering) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Bound { value: argument.to_owned(), depth: depth(argument), replaces }))
}

impl Operator for Bound {
    fn update(&self, name: &[u8], value: Value<'_>, scope: &Scope<'_>, out: &mut Writer) -> Result<Outcome> {
        if order::compare(self.value.as_value(), value) == self.replaces {
            self.create(name, scope, out)
        } else {
            Ok(Outcome::Unchanged)
        }
    }

    fn create(&self, name: &[u8], _scope: &Scope<'_>, out: &mut Writer) -> Result<Outcome> {
        out.append(name, self.value.as_value());
        Ok(Outcome::Changed)
    }

    fn depth(&self) -> usize {
        self.depth
    }
}
