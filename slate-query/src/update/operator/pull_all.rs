//! `$pullAll`: removes the elements that are equal to one of several values.

use super::{Creates, Operator, pull::remove_elements};
use crate::{
    Code, Error, Result,
    raw::{OwnedValue, Value, Writer},
    update::apply::{Outcome, Scope},
    value_set::ValueSet,
};

#[derive(Debug)]
struct PullAll {
    values: ValueSet<OwnedValue>,
}

pub(super) fn parse(argument: Value<'_>) -> Result<Box<dyn Operator>> {
    match argument.as_array() {
        Some(values) => Ok(Box::new(PullAll { values: values.values().map(Value::to_owned).collect() })),
        None => {
            let message = format!("$pullAll requires an array argument but was given a {}", argument.kind().alias());
            Err(Error::new(Code::BAD_VALUE, message))
        }
    }
}

impl Operator for PullAll {
    fn update(&self, name: &[u8], value: Value<'_>, _scope: &Scope<'_>, out: &mut Writer) -> Result<Outcome> {
        remove_elements(name, value, out, |element| self.values.contains(element))
    }

    fn creates(&self) -> Creates {
        Creates::Nothing
    }
}
