//! `$literal`, `$rand`, `$bsonSize`, `$binarySize`, the bitwise operators, and `$sortArray` and `$zip`.

use std::sync::Arc;

use super::{
    super::{
        Env, Evaluated, Expression, Variables,
        arguments::{Arguments, wrong_type},
        evaluated::ArrayWriter,
        node::{ExpressionNode, Operator, count},
        operands::operands,
    },
    array::list,
};
use crate::{
    Code, Error, Result,
    held::Held,
    number::Number,
    raw::{Doc, Kind, OwnedValue, Value},
    sort::ArraySort,
    work,
};

/// Returns the operand itself, not parsed.
pub(super) fn literal(_: &str, operand: Value<'_>, _: &Variables) -> Result<Expression> {
    Ok(Expression::constant(operand))
}

/// Returns the operand, parsed: `{$expr: <expression>}` is the expression.
pub(super) fn expr(_: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    Expression::parse(operand, variables)
}

pub(super) fn bson_size<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let document = arguments.read_present(0, Value::as_document, 31393, "a document")?;
    Ok(document.map_or(Evaluated::NULL, |document| Evaluated::count(document.bytes().len())))
}

pub(super) fn binary_size<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let length = |value: Value<'_>| match value.kind() {
        Kind::String => value.text().map(<[u8]>::len),
        _ => value.as_binary().map(|(_, payload)| payload.len()),
    };
    let length = arguments.read_present(0, length, 51276, "a string or a binary")?;
    Ok(length.map_or(Evaluated::NULL, Evaluated::count))
}

fn bits<'v>(arguments: &Arguments<'_, 'v>, start: i64, combine: fn(i64, i64) -> i64) -> Result<Evaluated<'v>> {
    let (mut result, mut is_long) = (start, false);
    for operand in &*arguments.values {
        match operand.present().map(|value| (value.kind(), Number::of(value).and_then(Number::to_i64))) {
            None => return Ok(Evaluated::NULL),
            Some((Kind::Int32, Some(int))) => result = combine(result, int),
            Some((Kind::Int64, Some(int))) => (result, is_long) = (combine(result, int), true),
            Some(_) => return Err(arguments.wrong_type(14, "integers", operand)),
        }
    }
    Ok(match i32::try_from(result) {
        Ok(int) if !is_long => Evaluated::int32(int),
        _ => Evaluated::int64(result),
    })
}

pub(super) fn bit_and<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    bits(&arguments, -1, |a, b| a & b)
}

pub(super) fn bit_or<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    bits(&arguments, 0, |a, b| a | b)
}

pub(super) fn bit_xor<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    bits(&arguments, 0, |a, b| a ^ b)
}

pub(super) fn bit_not<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    bits(&arguments, 0, |_, b| !b)
}

pub(super) fn ts_second<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    timestamp(&arguments, 5_687_301, |timestamp| timestamp >> 32)
}

pub(super) fn ts_increment<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    timestamp(&arguments, 5_687_302, |timestamp| timestamp & 0xffff_ffff)
}

fn timestamp<'v>(arguments: &Arguments<'_, 'v>, code: i32, part: fn(u64) -> u64) -> Result<Evaluated<'v>> {
    let timestamp = arguments.read_present(0, Value::as_timestamp, code, "a timestamp")?;
    let Some(timestamp) = timestamp else { return Ok(Evaluated::NULL) };
    Ok(Evaluated::int64(i64::try_from(part(timestamp)).unwrap_or_default()))
}

/// `$zip`: the transposed matrix.
#[derive(Debug)]
struct Zip {
    inputs: Box<[Expression]>,
    use_longest: bool,
    defaults: Option<Expression>,
}

impl Operator for Zip {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let (mut inputs, mut held) = (Vec::with_capacity(self.inputs.len()), Held::default());
        for input in &self.inputs {
            let input = input.evaluate(env)?;
            held.add(input.heap_bytes())?;
            inputs.push(input);
        }
        let (mut arrays, mut lists): (Vec<Vec<Value<'_>>>, Vec<Held>) = (Vec::new(), Vec::new());
        for input in &inputs {
            let Some(value) = input.present() else { return Ok(Evaluated::NULL) };
            let array = value.as_array().ok_or_else(|| wrong_type("$zip", 34468, "arrays as 'inputs'", input))?;
            let (array, list) = list(array)?;
            arrays.push(array);
            lists.push(list);
        }
        let defaults = self.defaults.as_ref().map(|defaults| defaults.evaluate(env)).transpose()?;
        held.add(defaults.as_ref().map_or(0, Evaluated::heap_bytes))?;
        let defaults: Vec<Value<'_>> =
            defaults.iter().filter_map(Evaluated::as_value).filter_map(Value::as_array).flat_map(Doc::values).collect();
        if self.defaults.is_some() && defaults.len() != arrays.len() {
            return Err(Error::new(Code(34467), "'defaults' and 'inputs' of $zip have the same length"));
        }
        let lengths = arrays.iter().map(Vec::len);
        let length = if self.use_longest { lengths.max() } else { lengths.min() };
        let mut rows = ArrayWriter::default();
        for place in 0..length.unwrap_or_default() {
            work::take(1 + arrays.len())?;
            let cells = arrays
                .iter()
                .enumerate()
                .map(|(column, array)| array.get(place).or(defaults.get(column)).copied().unwrap_or(Value::NULL));
            rows.push(ArrayWriter::of(cells)?.or_null());
            rows.check()?;
        }
        rows.finish()
    }

    fn operands(&self) -> Vec<&Expression> {
        self.inputs.iter().chain(&self.defaults).collect()
    }
}

pub(super) fn zip(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let refused = |code, message: String| Err(Error::new(Code(code), message));
    let Some(document) = operand.as_document() else {
        return refused(34460, format!("{name} takes an object, not {}", operand.kind().alias()));
    };
    let (mut inputs, mut use_longest, mut defaults) = (None, false, None);
    for element in document.elements() {
        match element.name {
            b"inputs" => match element.value.as_array() {
                Some(_) => inputs = Some(operands(element.value, variables)?),
                None => return refused(34461, "the parameter 'inputs' of $zip is an array".into()),
            },
            b"useLongestLength" => match element.value.as_bool() {
                Some(value) => use_longest = value,
                None => return refused(34463, "the parameter 'useLongestLength' of $zip is a boolean".into()),
            },
            b"defaults" => match element.value.as_array() {
                Some(_) => defaults = Some(Expression::parse(element.value, variables)?),
                None => return refused(34462, "the parameter 'defaults' of $zip is an array".into()),
            },
            _ => return refused(34464, format!("unknown parameter of $zip: {}", element.display_name())),
        }
    }
    let inputs = inputs.filter(|inputs| !inputs.is_empty());
    let Some(inputs) = inputs else { return refused(34465, "$zip needs at least one input".into()) };
    if defaults.is_some() && !use_longest {
        return refused(34466, "'defaults' of $zip needs 'useLongestLength'".into());
    }
    Ok(Expression(ExpressionNode::Operator(Arc::new(Zip { inputs: inputs.into(), use_longest, defaults }))))
}

/// `$sortArray`: by the elements themselves, or by fields of documents.
#[derive(Debug)]
struct SortArray {
    input: Expression,
    order: ArraySort,
}

impl Operator for SortArray {
    fn evaluate<'v>(&'v self, env: &Env<'v>) -> Result<Evaluated<'v>> {
        let input = self.input.evaluate(env)?;
        let Some(value) = input.present() else { return Ok(Evaluated::NULL) };
        let array =
            value.as_array().ok_or_else(|| wrong_type("$sortArray", 2_942_504, "an array as 'input'", &input))?;
        let mut held = Held::of(input.heap_bytes())?;
        let (mut values, _list) = list(array)?;
        // Long lists are sorted in parts, which are merged.
        held.add(2 * values.len() * size_of::<Value<'_>>())?;
        count(value)?;
        work::sort_by(&mut values, |a, b| self.order.compare(*a, *b, env.collation()));
        ArrayWriter::of(values)
    }

    fn operands(&self) -> Vec<&Expression> {
        vec![&self.input]
    }
}

pub(super) fn sort_array(name: &str, operand: Value<'_>, variables: &Variables) -> Result<Expression> {
    let refused = |code, message: String| Err(Error::new(Code(code), message));
    let Some(document) = operand.as_document() else {
        return refused(2_942_500, format!("{name} takes an object, not {}", operand.kind().alias()));
    };
    let (mut input, mut order) = (None, None);
    for element in document.elements() {
        match element.name {
            b"input" => input = Some(Expression::parse(element.value, variables)?),
            b"sortBy" => order = Some(element.value),
            _ => return refused(2_942_501, format!("unknown parameter of $sortArray: {}", element.display_name())),
        }
    }
    let Some(input) = input else { return refused(2_942_502, "$sortArray needs the parameter 'input'".into()) };
    let Some(order) = order else { return refused(2_942_503, "$sortArray needs the parameter 'sortBy'".into()) };
    let code = if order.as_document().is_some() { 2_942_505 } else { 2_942_506 };
    let order = ArraySort::parse(order).map_err(|error| Error::new(Code(code), error.message()))?;
    Ok(Expression(ExpressionNode::Operator(Arc::new(SortArray { input, order }))))
}

/// `$rand`: a random double from 0 to 1, different for each evaluation.
#[derive(Debug)]
struct Random;

impl Operator for Random {
    fn evaluate<'v>(&'v self, _: &Env<'v>) -> Result<Evaluated<'v>> {
        use std::hash::{BuildHasher, Hasher, RandomState};
        let bits = RandomState::new().build_hasher().finish() >> 11;
        let bits = u32::try_from(bits >> 21).map_or(0.0, f64::from) * 2_097_152.0
            + u32::try_from(bits & 0x1f_ffff).map_or(0.0, f64::from);
        Ok(Evaluated::double(bits / 9_007_199_254_740_992.0))
    }

    fn operands(&self) -> Vec<&Expression> {
        Vec::new()
    }

    fn is_repeatable(&self) -> bool {
        false
    }
}

/// `$createObjectId`: a new ObjectId for each evaluation.
#[derive(Debug)]
struct NewObjectId;

impl Operator for NewObjectId {
    fn evaluate<'v>(&'v self, _: &Env<'v>) -> Result<Evaluated<'v>> {
        Ok(Evaluated::Owned(OwnedValue::from(&bson::Bson::ObjectId(bson::oid::ObjectId::new()))))
    }

    fn operands(&self) -> Vec<&Expression> {
        Vec::new()
    }
}

pub(super) fn create_object_id(name: &str, operand: Value<'_>, _: &Variables) -> Result<Expression> {
    let is_empty = |document: Doc<'_>| document.is_empty();
    if !operand.as_document().is_some_and(is_empty) {
        return Err(Error::new(Code::FAILED_TO_PARSE, format!("{name} takes no arguments")));
    }
    Ok(Expression(ExpressionNode::Operator(Arc::new(NewObjectId))))
}

pub(super) fn rand(_: &str, operand: Value<'_>, _: &Variables) -> Result<Expression> {
    let is_empty = |document: Doc<'_>| document.is_empty();
    if !operand.as_container().is_some_and(is_empty) {
        return Err(Error::new(Code(3_040_501), "$rand takes no arguments"));
    }
    Ok(Expression(ExpressionNode::Operator(Arc::new(Random))))
}
