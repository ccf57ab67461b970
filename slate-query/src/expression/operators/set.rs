//! Operators that treat arrays as sets: the order and the repetitions of elements do not count.

use super::super::{Evaluated, arguments::Arguments};
use crate::{Code, Error, Result, raw::Value, value_set::ValueSet};

type Set<'v> = ValueSet<Value<'v>>;

/// An operand as a set.
fn set<'a>(arguments: &Arguments<'_, '_>, operand: &'a Evaluated<'_>, code: i32) -> Result<Set<'a>> {
    let array = operand.as_value().and_then(Value::as_array);
    Ok(array.ok_or_else(|| arguments.wrong_type(code, "arrays", operand))?.values().collect())
}

fn array<'v>(set: &Set<'_>) -> Evaluated<'v> {
    Evaluated::array(set.as_slice().iter().copied())
}

pub(super) fn union<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let mut all = Vec::new();
    for operand in &*arguments.values {
        let Some(value) = operand.present() else { return Ok(Evaluated::NULL) };
        let elements = value.as_array().ok_or_else(|| arguments.wrong_type(17043, "arrays", operand))?;
        all.extend(elements.values());
    }
    Ok(array(&all.into_iter().collect()))
}

pub(super) fn intersection<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let mut common: Option<Vec<Value<'_>>> = None;
    for operand in &*arguments.values {
        if operand.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let set = set(&arguments, operand, 17047)?;
        common = Some(match common {
            None => set.as_slice().to_vec(),
            Some(common) => common.into_iter().filter(|value| set.contains(*value)).collect(),
        });
    }
    Ok(Evaluated::array(common.unwrap_or_default()))
}

pub(super) fn difference<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    if arguments.has_null() {
        return Ok(Evaluated::NULL);
    }
    let operand = arguments.get(0);
    let elements = operand.or_null().as_array().ok_or_else(|| arguments.wrong_type(17048, "arrays", operand))?;
    let excluded = set(&arguments, arguments.get(1), 17049)?;
    // The remaining elements keep their order; of equal ones the first remains.
    let mut left: Vec<(usize, Value<'_>)> =
        elements.values().filter(|value| !excluded.contains(*value)).enumerate().collect();
    left.sort_by(|(_, a), (_, b)| crate::order::compare(*a, *b));
    left.dedup_by(|(_, a), (_, b)| crate::order::equal(*a, *b));
    left.sort_by_key(|(place, _)| *place);
    Ok(Evaluated::array(left.into_iter().map(|(_, value)| value)))
}

pub(super) fn equals<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    if arguments.values.len() < 2 {
        return Err(Error::new(Code(17045), "$setEquals needs at least two arguments"));
    }
    let sets: Vec<Set<'_>> =
        arguments.values.iter().map(|operand| set(&arguments, operand, 17044)).collect::<Result<_>>()?;
    let same = |a: &Set<'_>, b: &Set<'_>| {
        a.as_slice().len() == b.as_slice().len() && a.as_slice().iter().all(|value| b.contains(*value))
    };
    Ok(sets.windows(2).all(|pair| matches!(pair, [a, b] if same(a, b))).into())
}

pub(super) fn is_subset<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let (left, right) = (set(&arguments, arguments.get(0), 17046)?, set(&arguments, arguments.get(1), 17042)?);
    Ok(left.as_slice().iter().all(|value| right.contains(*value)).into())
}

fn truths<'a>(arguments: &Arguments<'_, 'a>, code: i32) -> Result<Vec<bool>> {
    let operand = arguments.get(0);
    let array = operand.as_value().and_then(Value::as_array);
    let array = array.ok_or_else(|| arguments.wrong_type(code, "an array", operand))?;
    Ok(array.values().map(|value| Evaluated::Borrowed(value).is_true()).collect())
}

pub(super) fn all_true<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(truths(&arguments, 17040)?.into_iter().all(|truth| truth).into())
}

pub(super) fn any_true<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(truths(&arguments, 17041)?.into_iter().any(|truth| truth).into())
}
