//! Operators that treat arrays as sets: the order and the repetitions of elements do not count.

use super::super::{
    Evaluated, Expression, Variables,
    arguments::{ANY, Arguments, Function, NullEnds, Operands},
    fold,
    operands::operands,
};
use crate::{
    Code, Error, Result,
    collation::Compared,
    order,
    raw::Value,
    value_set::{AsValue as _, ValueSet},
    work,
};

type Set<'v> = ValueSet<Compared<'v>>;

/// Returns an operand as a set.
fn set<'a>(arguments: &Arguments<'_, '_>, operand: &'a Evaluated<'_>, code: i32) -> Result<Set<'a>> {
    let array = operand.as_value().and_then(Value::as_array);
    let array = array.ok_or_else(|| arguments.wrong_type(code, "arrays", operand))?;
    Ok(array.values().map(|value| Compared::new(arguments.collation, value)).collect())
}

fn array<'v>(set: &Set<'_>) -> Evaluated<'v> {
    Evaluated::array(set.as_slice().iter().map(|compared| compared.value))
}

pub(super) fn union<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let mut all = Vec::new();
    for operand in &*arguments.values {
        let Some(value) = operand.present() else { return Ok(Evaluated::NULL) };
        let elements = value.as_array().ok_or_else(|| arguments.wrong_type(17043, "arrays", operand))?;
        all.extend(elements.values().map(|value| Compared::new(arguments.collation, value)));
    }
    Ok(array(&all.into_iter().collect()))
}

pub(super) fn intersection<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let mut common: Option<Vec<Compared<'_>>> = None;
    for operand in &*arguments.values {
        if operand.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let set = set(&arguments, operand, 17047)?;
        common = Some(match common {
            None => set.as_slice().to_vec(),
            Some(common) => common.into_iter().filter(|value| set.contains(value.as_value())).collect(),
        });
    }
    Ok(Evaluated::array(common.unwrap_or_default().iter().map(|compared| compared.value)))
}

pub(super) fn difference<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    if arguments.has_null() {
        return Ok(Evaluated::NULL);
    }
    let elements = arguments.read(0, Value::as_array, 17048, "arrays")?;
    let excluded = set(&arguments, arguments.get(1), 17049)?;
    // The remaining elements keep their order; of equal ones the first remains.
    let compared = elements.values().map(|value| Compared::new(arguments.collation, value));
    let mut left: Vec<(usize, Compared<'_>)> =
        compared.filter(|value| !excluded.contains(value.as_value())).enumerate().collect();
    work::sort_by(&mut left, |(_, a), (_, b)| order::compare(a.as_value(), b.as_value()));
    left.dedup_by(|(_, a), (_, b)| order::equal(a.as_value(), b.as_value()));
    left.sort_by_key(|(place, _)| *place);
    Ok(Evaluated::array(left.iter().map(|(_, compared)| compared.value)))
}

static EQUALS: Function = Function {
    name: "$setEquals",
    arity: ANY,
    call: equals,
    operands: Operands::Compared,
    null_ends: NullEnds::Never,
    constant_array: None,
};

/// Parses `$setEquals`, which refuses constants that are not arrays even if other operands depend on a document.
pub(super) fn parse_equals(_: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let operands = operands(operand, variables)?;
    if operands.len() < 2 {
        return Err(Error::new(Code(17045), "$setEquals needs at least two arguments"));
    }
    let is_wrong = |operand: &Expression| {
        operand.as_constant().is_some_and(|constant| constant.as_value().and_then(Value::as_array).is_none())
    };
    if operands.iter().any(is_wrong) && !variables.is_lenient() {
        return Err(Error::new(Code(5_887_502), "$setEquals takes arrays"));
    }
    fold::call(&EQUALS, operands, variables)
}

fn equals<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let same = |a: &Set<'_>, b: &Set<'_>| {
        a.as_slice().len() == b.as_slice().len() && a.as_slice().iter().all(|value| b.contains(value.as_value()))
    };
    let first = set(&arguments, arguments.get(0), 17044)?;
    // As in MongoDB, operands after one that differs are not looked at.
    for operand in arguments.values.iter().skip(1) {
        if !same(&first, &set(&arguments, operand, 17044)?) {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

pub(super) fn is_subset<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let (left, right) = (set(&arguments, arguments.get(0), 17046)?, set(&arguments, arguments.get(1), 17042)?);
    Ok(left.as_slice().iter().all(|value| right.contains(value.as_value())).into())
}

fn truths<'a>(arguments: &Arguments<'_, 'a>, code: i32) -> Result<Vec<bool>> {
    let array = arguments.read(0, Value::as_array, code, "an array")?;
    Ok(array.values().map(|value| Evaluated::Borrowed(value).is_true()).collect())
}

pub(super) fn all_true<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(truths(&arguments, 17040)?.into_iter().all(|truth| truth).into())
}

pub(super) fn any_true<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(truths(&arguments, 17041)?.into_iter().any(|truth| truth).into())
}
