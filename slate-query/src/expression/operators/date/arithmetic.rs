//! `$dateAdd` and `$dateSubtract`.

use jiff::{Span, tz::TimeZone};

use super::{
    super::{
        super::{Evaluated, Expression, Variables, arguments::wrong_type},
        named::{Compute, Parts, operator},
    },
    local, out_of_range, time,
    unit::Unit,
    zone, zone_part,
};
use crate::{Code, Error, Result, number::Number, raw::Value};

pub(in super::super) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let names = ["startDate", "unit", "amount", "timezone"];
    let mut parts = Parts::parse(name, operand, &names, variables, (5_166_400, 5_166_401))?;
    let mut need = |place: usize, part| parts.need(place, name, part, 5_166_402);
    let operands = vec![need(0, "startDate")?, need(1, "unit")?, need(2, "amount")?];
    let compute: Compute = match name {
        "$dateAdd" => |values| moved("$dateAdd", values, 1),
        _ => |values| moved("$dateSubtract", values, -1),
    };
    let operands = operands.into_iter().chain([zone_part(&mut parts, 3)]).collect();
    operator(name, operands, compute)
}

fn moved<'v>(name: &str, values: &mut [Evaluated<'v>], sign: i64) -> Result<Evaluated<'v>> {
    let [start, unit, amount, place] = values else { return Ok(Evaluated::NULL) };
    let Some(zone) = zone(name, place)? else { return Ok(Evaluated::NULL) };
    let start_time = time(name, start, 5_166_403)?;
    let unit = Unit::of(name, unit)?;
    let amount = match amount.present() {
        None => None,
        Some(value) => {
            let whole = Number::of(value).and_then(Number::to_i64);
            Some(whole.ok_or_else(|| wrong_type(name, 5_166_405, "a whole number as 'amount'", amount))?)
        }
    };
    let (Some(start), Some(unit), Some(amount)) = (start_time, unit, amount) else { return Ok(Evaluated::NULL) };
    let amount = amount
        .checked_mul(sign)
        .ok_or_else(|| Error::new(Code(5_976_500), format!("the amount of {name} is out of range")))?;
    unit.added(start, amount, &zone).map(Evaluated::date)
}

impl Unit {
    /// The date that is this many units after `start`, in a time zone.
    pub(crate) fn added(self, start: i64, amount: i64, zone: &TimeZone) -> Result<i64> {
        if let Some(millis) = self.millis() {
            return amount.checked_mul(millis).and_then(|by| start.checked_add(by)).ok_or_else(out_of_range);
        }
        let span = match self {
            Self::Week => Span::new().try_weeks(amount),
            Self::Day => Span::new().try_days(amount),
            _ => Span::new().try_months(amount.saturating_mul(self.months().unwrap_or(1))),
        };
        let span = span.map_err(|_| Error::new(Code(5_976_500), "the amount of time is out of range"))?;
        let moved = local(start, zone)?.checked_add(span).map_err(|_| out_of_range())?;
        Ok(moved.timestamp().as_millisecond())
    }

    /// As [`added`](Self::added), in UTC.
    pub(crate) fn added_in_utc(self, start: i64, amount: i64) -> Result<i64> {
        self.added(start, amount, &TimeZone::UTC)
    }
}
