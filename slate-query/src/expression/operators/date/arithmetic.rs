//! `$dateAdd` and `$dateSubtract`.

use super::{
    super::{
        super::{Evaluated, Expression, Variables, arguments::wrong_type},
        named::{Compute, Parts},
    },
    Local, Zone, check_unit, check_zone, operator, out_of_range, time,
    unit::Unit,
    zone,
    zone::{DAY, day_number},
    zone_part,
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
    operator(name, operands, &[(1, check_unit), (3, check_zone)], compute, variables)
}

fn moved<'v>(name: &str, values: &mut [Evaluated<'v>], sign: i64) -> Result<Evaluated<'v>> {
    let [start, unit, amount, place] = values else { return Ok(Evaluated::NULL) };
    // MongoDB's order, which decides whether the result is null or an error: the types of the date and of the amount come last.
    if start.is_nullish() {
        return Ok(Evaluated::NULL);
    }
    let Some(unit) = Unit::of(name, unit)? else { return Ok(Evaluated::NULL) };
    let Some(number) = amount.present() else { return Ok(Evaluated::NULL) };
    let Some(zone) = zone(name, place)? else { return Ok(Evaluated::NULL) };
    let Some(start) = time(name, start, 5_166_403)? else { return Ok(Evaluated::NULL) };
    let whole = Number::of(number).and_then(Number::to_i64);
    let amount = whole.ok_or_else(|| wrong_type(name, 5_166_405, "a whole number as 'amount'", amount))?;
    let amount = amount
        .checked_mul(sign)
        .ok_or_else(|| Error::new(Code(5_976_500), format!("the amount of {name} is out of range")))?;
    unit.added(start, amount, &zone).map(Evaluated::date)
}

impl Unit {
    /// Returns the date that is this many units after `start`, in a time zone.
    fn added(self, start: i64, amount: i64, zone: &Zone) -> Result<i64> {
        if let Some(millis) = self.millis() {
            return amount.checked_mul(millis).and_then(|by| start.checked_add(by)).ok_or_else(out_of_range);
        }
        let local = zone.local(start)?;
        let day = match self.months() {
            Some(months) => {
                // Keeps sums of months and of years within 64 bits.
                let most = i64::from(i32::MAX);
                let by = amount.checked_mul(months).filter(|by| (-most * 12..most * 12).contains(by));
                let by = by.ok_or_else(|| Error::new(Code(5_976_500), "the amount of time is out of range"))?;
                let from = Local::new(local);
                day_number(from.month_number() + by, from.within().day())?
            }
            None => {
                let days = amount.checked_mul(if self == Self::Week { 7 } else { 1 });
                let day = days.and_then(|days| local.div_euclid(DAY).checked_add(days));
                day.ok_or_else(|| Error::new(Code(5_976_500), "the amount of time is out of range"))?
            }
        };
        let moved = day.checked_mul(DAY).and_then(|midnight| midnight.checked_add(local.rem_euclid(DAY)));
        zone.millis(moved.ok_or_else(out_of_range)?)
    }

    /// Returns the date that is this many units after `start`, in UTC.
    pub(crate) fn added_in_utc(self, start: i64, amount: i64) -> Result<i64> {
        self.added(start, amount, &Zone::UTC)
    }
}
