//! `$currentDate`: sets the current time.

use super::contract::Operator;
use crate::{
    Code, Error, Result,
    raw::{Kind, Value, Writer},
    update::scope::{UpdateOutcome, UpdateScope},
};

#[derive(Clone, Copy, Debug)]
enum CurrentDate {
    Date,
    Timestamp,
}

/// Parses `true`, `false`, `{$type: "date"}` (all of which mean a date) or `{$type: "timestamp"}`.
pub(super) fn parse(argument: Value<'_>) -> Result<Box<dyn Operator>> {
    let refuse = |message: &str| Err(Error::new(Code::BAD_VALUE, message));
    let options = match argument.kind() {
        Kind::Boolean => return Ok(Box::new(CurrentDate::Date)),
        _ => argument.as_document(),
    };
    let Some(options) = options else {
        return refuse("$currentDate takes a boolean or {$type: 'date' | 'timestamp'}");
    };
    let mut chosen = None;
    for option in options.elements() {
        if option.name != b"$type" {
            return refuse(&format!("unrecognized $currentDate option: {}", option.display_name()));
        }
        chosen = match option.value.as_str() {
            Some("date") => Some(CurrentDate::Date),
            Some("timestamp") => Some(CurrentDate::Timestamp),
            Some(_) | None => chosen,
        };
    }
    match chosen {
        Some(chosen) => Ok(Box::new(chosen)),
        None => refuse("the '$type' of $currentDate is 'date' or 'timestamp'"),
    }
}

impl Operator for CurrentDate {
    fn update(
        &self,
        name: &[u8],
        _value: Value<'_>,
        scope: &UpdateScope<'_>,
        out: &mut Writer,
    ) -> Result<UpdateOutcome> {
        self.create(name, scope, out)
    }

    fn create(&self, name: &[u8], scope: &UpdateScope<'_>, out: &mut Writer) -> Result<UpdateOutcome> {
        let context = scope.context;
        match self {
            Self::Date => out.append(name, Value::new(Kind::DateTime, &context.now_millis.to_le_bytes())),
            Self::Timestamp => out.append(name, Value::new(Kind::Timestamp, &context.timestamp.to_le_bytes())),
        }
        Ok(UpdateOutcome::Changed)
    }
}
