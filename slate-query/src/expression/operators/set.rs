//! Operators that treat arrays as sets: the order and the repetitions of elements do not count.

use super::super::{
    Evaluated, Expression, Variables,
    arguments::{ANY, Arguments, Function, NullEnds, Operands},
    evaluated::ArrayWriter,
    fold,
    operands::operands,
};
use crate::{
    Code, Error, Result,
    collation::Compared,
    held::Held,
    order,
    raw::Value,
    value_set::{AsValue as _, ValueSet},
    work,
};

type Set<'v> = ValueSet<Compared<'v>>;

/// Adds an element, with its sort key by the collation, to a list. Counts four entries: lists double when they grow, and sorting uses another one.
fn add<'a>(
    arguments: &Arguments<'_, '_>,
    element: Value<'a>,
    all: &mut Vec<Compared<'a>>,
    held: &mut Held,
) -> Result<()> {
    let compared = Compared::new(arguments.collation, element);
    held.add(4 * size_of::<Compared<'_>>() + compared.heap_bytes())?;
    all.push(compared);
    Ok(())
}

/// Returns an operand as a set.
fn set<'a>(arguments: &Arguments<'_, '_>, operand: &'a Evaluated<'_>, code: i32, held: &mut Held) -> Result<Set<'a>> {
    let array = operand.as_value().and_then(Value::as_array);
    let array = array.ok_or_else(|| arguments.wrong_type(code, "arrays", operand))?;
    let mut all = Vec::new();
    array.values().try_for_each(|element| add(arguments, element, &mut all, held))?;
    Ok(all.into_iter().collect())
}

pub(super) fn union<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let (mut all, mut held) = (Vec::new(), Held::default());
    for operand in &*arguments.values {
        let Some(value) = operand.present() else { return Ok(Evaluated::NULL) };
        let elements = value.as_array().ok_or_else(|| arguments.wrong_type(17043, "arrays", operand))?;
        elements.values().try_for_each(|element| add(&arguments, element, &mut all, &mut held))?;
    }
    let union: Set<'_> = all.into_iter().collect();
    ArrayWriter::of(union.as_slice().iter().map(|compared| compared.value))
}

pub(super) fn intersection<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let (mut common, mut held): (Option<Vec<Compared<'_>>>, _) = (None, Held::default());
    for operand in &*arguments.values {
        if operand.is_nullish() {
            return Ok(Evaluated::NULL);
        }
        let set = set(&arguments, operand, 17047, &mut held)?;
        common = Some(match common {
            None => set.as_slice().to_vec(),
            Some(common) => common.into_iter().filter(|value| set.contains(value.as_value())).collect(),
        });
    }
    ArrayWriter::of(common.unwrap_or_default().iter().map(|compared| compared.value))
}

pub(super) fn difference<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    if arguments.has_null() {
        return Ok(Evaluated::NULL);
    }
    let elements = arguments.read(0, Value::as_array, 17048, "arrays")?;
    let mut held = Held::default();
    let excluded = set(&arguments, arguments.get(1), 17049, &mut held)?;
    // The remaining elements keep their order; of equal ones the first remains.
    let mut all = Vec::new();
    elements.values().try_for_each(|element| add(&arguments, element, &mut all, &mut held))?;
    held.add(4 * all.len() * size_of::<(usize, Compared<'_>)>())?;
    let mut left: Vec<(usize, Compared<'_>)> =
        all.into_iter().filter(|value| !excluded.contains(value.as_value())).enumerate().collect();
    work::sort_by(&mut left, |(_, a), (_, b)| order::compare(a.as_value(), b.as_value()));
    left.dedup_by(|(_, a), (_, b)| order::equal(a.as_value(), b.as_value()));
    work::sort_by(&mut left, |(a, _), (b, _)| a.cmp(b));
    ArrayWriter::of(left.iter().map(|(_, compared)| compared.value))
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
    let first = &mut Held::default();
    let first = set(&arguments, arguments.get(0), 17044, first)?;
    // As in MongoDB, operands after one that differs are not checked.
    for operand in arguments.values.iter().skip(1) {
        if !same(&first, &set(&arguments, operand, 17044, &mut Held::default())?) {
            return Ok(false.into());
        }
    }
    Ok(true.into())
}

pub(super) fn is_subset<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let mut held = Held::default();
    let left = set(&arguments, arguments.get(0), 17046, &mut held)?;
    let right = set(&arguments, arguments.get(1), 17042, &mut held)?;
    Ok(left.as_slice().iter().all(|value| right.contains(value.as_value())).into())
}

pub(super) fn all_true<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let array = arguments.read(0, Value::as_array, 17040, "an array")?;
    Ok(array.values().all(|value| Evaluated::Borrowed(value).is_true()).into())
}

pub(super) fn any_true<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let array = arguments.read(0, Value::as_array, 17041, "an array")?;
    Ok(array.values().any(|value| Evaluated::Borrowed(value).is_true()).into())
}
