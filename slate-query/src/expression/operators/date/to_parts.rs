//! `$dateToParts`.

use super::{
    super::{
        super::{Evaluated, Expression, Variables, arguments::wrong_type},
        named::Parts,
    },
    check_zone, local, operator, time, zone, zone_part,
};
use crate::{
    Result,
    raw::{Value, Writer},
};

pub(in super::super) fn parse(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let mut parts = Parts::parse(name, operand, &["date", "timezone", "iso8601"], variables, (40524, 40520))?;
    let date = parts.need(0, name, "date", 40522)?;
    let (place, iso) = (zone_part(&mut parts, 1), parts.or(2, &false.into()));
    operator(name, vec![date, place, iso], &[(1, check_zone)], compute, variables)
}

fn compute<'v>(values: &mut [Evaluated<'v>]) -> Result<Evaluated<'v>> {
    let [date, place, iso] = values else { return Ok(Evaluated::NULL) };
    let Some(zone) = zone("$dateToParts", place)? else { return Ok(Evaluated::NULL) };
    let Some(value) = iso.present() else { return Ok(Evaluated::NULL) };
    let is_iso = value.as_bool().ok_or_else(|| wrong_type("$dateToParts", 40521, "a boolean as 'iso8601'", iso))?;
    let Some(millis) = time("$dateToParts", date, 16006)? else { return Ok(Evaluated::NULL) };
    let date = local(millis, &zone)?;
    let mut writer = Writer::new();
    let int = |whole: i64| i32::try_from(whole).unwrap_or_default();
    let mut append = |name: &str, value: i32| writer.append(name.as_bytes(), Evaluated::int32(value).or_null());
    if is_iso {
        let week = date.within().date().iso_week_date();
        append("isoWeekYear", int(date.iso_year()));
        append("isoWeek", week.week().into());
        append("isoDayOfWeek", week.weekday().to_monday_one_offset().into());
    } else {
        append("year", int(date.year()));
        append("month", date.within().month().into());
        append("day", date.within().day().into());
    }
    append("hour", date.within().hour().into());
    append("minute", date.within().minute().into());
    append("second", date.within().second().into());
    append("millisecond", date.within().millisecond().into());
    Ok(Evaluated::document(writer))
}
