//! `$pop`: removes the first or the last element.

use super::{
    contract::{Creates, Operator},
    integer::integer,
};
use crate::{
    Code, Error, Result,
    raw::{Value, Writer, digits},
    update::scope::{UpdateOutcome, UpdateScope},
};

#[derive(Clone, Copy, Debug)]
enum Pop {
    First,
    Last,
}

pub(super) fn parse(argument: Value<'_>) -> Result<Box<dyn Operator>> {
    match integer(argument) {
        Some(1) => Ok(Box::new(Pop::Last)),
        Some(-1) => Ok(Box::new(Pop::First)),
        Some(_) | None => Err(Error::new(Code::FAILED_TO_PARSE, "$pop expects 1 or -1")),
    }
}

impl Operator for Pop {
    fn update(&self, name: &[u8], value: Value<'_>, _: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        let array = value.as_array().ok_or_else(|| {
            let message = format!("$pop acts on an array, not on a value of type {}", value.kind().alias());
            Error::new(Code::TYPE_MISMATCH, message)
        })?;
        let length = array.elements().count();
        if length == 0 {
            return Ok(UpdateOutcome::Unchanged);
        }
        let skip = match self {
            Self::First => 1,
            Self::Last => 0,
        };
        out.open_array(name);
        for (position, element) in array.values().skip(skip).take(length - 1).enumerate() {
            out.append(digits(position).as_bytes(), element);
        }
        out.close();
        Ok(UpdateOutcome::Changed)
    }

    fn creates(&self) -> Creates {
        Creates::Nothing
    }
}
