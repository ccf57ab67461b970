//! `$pullAll`: removes the elements that are equal to one of several values.

use super::{
    contract::{Creates, Operator},
    pull::remove_elements,
};
use crate::{
    Code, Error, Result,
    collation::{Collation, Compared},
    raw::{OwnedValue, Value, Writer},
    update::scope::{UpdateOutcome, UpdateScope},
    value_set::{AsValue as _, ValueSet},
};

#[derive(Debug)]
struct PullAll {
    /// The values to remove, with their strings replaced by the collation, if there is one.
    values: ValueSet<OwnedValue>,
    collation: Option<Collation>,
}

pub(super) fn parse(argument: Value<'_>, collation: Option<&Collation>) -> Result<Box<dyn Operator>> {
    match argument.as_array() {
        Some(values) => {
            let replaced = |value| Compared::new(collation, value).as_value().to_owned();
            Ok(Box::new(PullAll { values: values.values().map(replaced).collect(), collation: collation.cloned() }))
        }
        None => {
            let message = format!("$pullAll requires an array argument but was given a {}", argument.kind().alias());
            Err(Error::new(Code::BAD_VALUE, message))
        }
    }
}

impl Operator for PullAll {
    fn update(&self, name: &[u8], value: Value<'_>, _: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        remove_elements(name, value, out, |element| {
            Ok(self.values.contains(Compared::new(self.collation.as_ref(), element).as_value()))
        })
    }

    fn creates(&self) -> Creates {
        Creates::Nothing
    }
}
