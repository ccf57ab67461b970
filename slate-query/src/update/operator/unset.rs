//! `$unset`: removes a field.

use super::contract::{Creates, Operator};
use crate::{
    Result,
    raw::{Value, Writer},
    update::scope::{UpdateOutcome, UpdateScope},
};

#[derive(Debug)]
pub(in crate::update) struct Unset;

/// The argument is ignored.
pub(super) fn parse(_argument: Value<'_>) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Unset))
}

impl Operator for Unset {
    fn update(&self, _name: &[u8], _value: Value<'_>, _: &UpdateScope<'_>, _out: &mut Writer) -> Result<UpdateOutcome> {
        Ok(UpdateOutcome::Removed)
    }

    /// Does nothing: the field cannot exist.
    fn blocked(&self, _: &UpdateScope<'_>) -> Result<()> {
        Ok(())
    }

    fn creates(&self) -> Creates {
        Creates::Nothing
    }
}
