//! Operators on arrays that need no variables.

use super::super::{
    Evaluated,
    arguments::Arguments,
    evaluated::{ArrayWriter, DocumentWriter},
};
use crate::{
    Code, Error, Result,
    held::Held,
    named_list::NamedList,
    number::Number,
    order,
    raw::{Doc, Kind, Value},
};

/// Returns the elements as a list, and its counted memory.
pub(super) fn list(array: Doc<'_>) -> Result<(Vec<Value<'_>>, Held)> {
    /// Lists of arrays below this size in bytes are not counted.
    const SHORT: usize = 1 << 10;
    let length = if array.bytes().len() < SHORT { 0 } else { array.values().count() };
    let held = Held::of(length * size_of::<Value<'_>>())?;
    let mut values = Vec::with_capacity(length);
    values.extend(array.values());
    Ok((values, held))
}

/// Bytes that a field takes in a growing [`NamedList`]: name and value, twice, and its entry in a table.
pub(super) const NAMED: usize = 128;

/// Returns a number as an int32; `None` if it is not whole or out of range.
fn whole(number: Number) -> Option<i32> {
    number.to_i64().and_then(|whole| i32::try_from(whole).ok())
}

/// Resolves a position in a list of this length; a negative one counts from the end. `None` if it is outside.
fn place(position: i32, length: usize) -> Option<usize> {
    match usize::try_from(position) {
        Ok(position) => Some(position).filter(|position| *position < length),
        Err(_) => length.checked_sub(usize::try_from(position.unsigned_abs()).ok()?),
    }
}

/// Returns an element of an operand. The element of a borrowed operand is borrowed.
fn element<'v>(array: Evaluated<'v>, place: usize) -> Evaluated<'v> {
    match array {
        Evaluated::Borrowed(array) => {
            let element = array.as_array().and_then(|array| array.values().nth(place));
            element.map_or(Evaluated::Missing, Evaluated::Borrowed)
        }
        Evaluated::Owned(array) => {
            let element = array.as_value().as_array().and_then(|array| array.values().nth(place));
            element.map_or(Evaluated::Missing, |element| Evaluated::Owned(element.to_owned()))
        }
        Evaluated::Missing => Evaluated::Missing,
    }
}

pub(super) fn size<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let array = arguments.read(0, Value::as_array, 17124, "an array")?;
    Ok(Evaluated::count(array.values().count()))
}

pub(super) fn is_array<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    Ok(arguments.get(0).as_value().is_some_and(|value| value.kind() == Kind::Array).into())
}

pub(super) fn array_elem_at<'v>(mut arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    if arguments.has_null() {
        return Ok(Evaluated::NULL);
    }
    let length = arguments.read(0, Value::as_array, 28689, "an array")?.values().count();
    let position = arguments.read(1, Number::of, 28690, "a number as its position")?;
    let position = whole(position).ok_or_else(|| {
        Error::new(Code(28691), "the position of $arrayElemAt is a whole number in the range of int32")
    })?;
    Ok(place(position, length).map_or(Evaluated::Missing, |place| element(arguments.take(0), place)))
}

fn at_end<'v>(mut arguments: Arguments<'_, 'v>, place: fn(usize) -> Option<usize>) -> Result<Evaluated<'v>> {
    let array = arguments.read_present(0, Value::as_array, 28689, "an array")?;
    let Some(array) = array else { return Ok(Evaluated::NULL) };
    let place = place(array.values().count());
    Ok(place.map_or(Evaluated::Missing, |place| element(arguments.take(0), place)))
}

pub(super) fn first<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    at_end(arguments, |length| (length > 0).then_some(0))
}

pub(super) fn last<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    at_end(arguments, |length| length.checked_sub(1))
}

pub(super) fn concat_arrays<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let mut all = ArrayWriter::default();
    for operand in &*arguments.values {
        let Some(value) = operand.present() else { return Ok(Evaluated::NULL) };
        let array = value.as_array().ok_or_else(|| arguments.wrong_type(28664, "arrays", operand))?;
        array.values().for_each(|value| all.push(value));
        all.check()?;
    }
    all.finish()
}

pub(super) fn reverse_array<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let array = arguments.read_present(0, Value::as_array, 34435, "an array")?;
    let Some(array) = array else { return Ok(Evaluated::NULL) };
    let (values, _held) = list(array)?;
    ArrayWriter::of(values.into_iter().rev())
}

pub(super) fn index_of_array<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let array = arguments.read_present(0, Value::as_array, 40090, "an array")?;
    let Some(array) = array else { return Ok(Evaluated::NULL) };
    let (start, end) = range(&arguments, 9_711_600, 9_711_601)?;
    let wanted = arguments.get(1).as_value().unwrap_or(Value::UNDEFINED);
    let mut searched = array.values().enumerate().skip(start).take(end.saturating_sub(start));
    let found = searched.find(|(_, element)| order::equal(*element, wanted));
    Ok(found.map_or(Evaluated::int32(-1), |(place, _)| Evaluated::count(place)))
}

/// Returns the start and the end of a search: the third and the fourth operand, or 0 and no end.
pub(super) fn range(arguments: &Arguments<'_, '_>, type_code: i32, negative_code: i32) -> Result<(usize, usize)> {
    let mut bounds = [0, usize::MAX];
    for (bound, place) in bounds.iter_mut().zip(2..arguments.values.len()) {
        let position = |value| Number::of(value).and_then(whole);
        let position = arguments.read(place, position, type_code, "whole numbers as start and end")?;
        *bound = usize::try_from(position).map_err(|_| {
            Error::new(Code(negative_code), format!("the start and end of {} are not negative", arguments.name))
        })?;
    }
    let [start, end] = bounds;
    Ok((start, end))
}

pub(super) fn slice<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    if arguments.has_null() {
        return Ok(Evaluated::NULL);
    }
    let array = arguments.read(0, Value::as_array, 28724, "an array")?;
    let number = |place: usize, type_code, whole_code| {
        whole(arguments.read(place, Number::of, type_code, "whole numbers")?)
            .ok_or_else(|| Error::new(Code(whole_code), "$slice takes whole numbers in the range of int32"))
    };
    let length = array.values().count();
    let first = number(1, 28725, 28726)?;
    let (start, count) = if arguments.values.len() == 2 {
        let count = usize::try_from(first.unsigned_abs()).unwrap_or(usize::MAX);
        (if first < 0 { length.saturating_sub(count) } else { 0 }, count)
    } else {
        let count = number(2, 28727, 28728)?;
        let count = usize::try_from(count).ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| Error::new(Code(28729), "the third argument of $slice is positive"))?;
        let start = usize::try_from(first)
            .unwrap_or_else(|_| length.saturating_sub(usize::try_from(first.unsigned_abs()).unwrap_or(usize::MAX)));
        (start, count)
    };
    ArrayWriter::of(array.values().skip(start).take(count))
}

/// Maximum number of elements of a `$range`, as in MongoDB: 64 MiB at 32 bytes each.
const LONGEST_RANGE: i64 = (64 << 20) / 32;

pub(super) fn range_of<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let bound = |place: usize, type_code, whole_code| {
        whole(arguments.read(place, Number::of, type_code, "numbers")?)
            .map(i64::from)
            .ok_or_else(|| Error::new(Code(whole_code), "$range takes whole numbers in the range of int32"))
    };
    let (start, end) = (bound(0, 34443, 34444)?, bound(1, 34445, 34446)?);
    let step = if arguments.values.len() == 3 { bound(2, 34447, 34448)? } else { 1 };
    if step == 0 {
        return Err(Error::new(Code(34449), "the step of $range is not zero"));
    }
    let mut values = ArrayWriter::default();
    let (mut next, mut length) = (start, 0);
    while if step > 0 { next < end } else { next > end } {
        length += 1;
        if length > LONGEST_RANGE {
            return Err(Error::new(Code::EXCEEDED_MEMORY_LIMIT, "$range would use more than 64 MiB of memory"));
        }
        values.push(Value::new(Kind::Int32, &i32::try_from(next).unwrap_or_default().to_le_bytes()));
        values.check()?;
        next += step;
    }
    values.finish()
}

pub(super) fn array_to_object<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let array = arguments.read_present(0, Value::as_array, 40386, "an array")?;
    let Some(array) = array else { return Ok(Evaluated::NULL) };
    let refused = |code, message: &str| Err(Error::new(Code(code), format!("$arrayToObject: {message}")));
    // A later field replaces the value, but not the position, of an earlier field of the same name.
    let (mut fields, mut held): (NamedList<&[u8], Value<'_>>, _) = (NamedList::default(), Held::default());
    let mut form = None;
    for element in array.values() {
        if *form.get_or_insert(element.kind()) != element.kind() {
            return if form == Some(Kind::Document) {
                refused(40391, "all elements are documents, as the first one is")
            } else {
                refused(40396, "all elements are arrays, as the first one is")
            };
        }
        let (name, value) = if let Some(document) = element.as_document() {
            let (Some(name), Some(value)) = (document.get("k"), document.get("v")) else {
                let is_pair = document.elements().count() == 2;
                return refused(if is_pair { 40393 } else { 40392 }, "a document consists of 'k' and 'v'");
            };
            if document.elements().count() != 2 {
                return refused(40392, "a document consists of 'k' and 'v'");
            }
            if name.kind() != Kind::String {
                return refused(40394, "'k' is a string");
            }
            (name, value)
        } else if let Some(pair) = element.as_array() {
            let mut values = pair.values();
            let (Some(name), Some(value), None) = (values.next(), values.next(), values.next()) else {
                return refused(40397, "an array consists of a name and a value");
            };
            if name.kind() != Kind::String {
                return refused(40395, "a name is a string");
            }
            (name, value)
        } else {
            return refused(40398, "an element is a document or an array");
        };
        let name = name.text().unwrap_or_default();
        if name.contains(&0) {
            let code = if form == Some(Kind::Document) { 4_940_401 } else { 4_940_400 };
            return refused(code, "a name contains no NUL character");
        }
        held.add(NAMED)?;
        fields.set(name, value);
    }
    let mut writer = DocumentWriter::default();
    fields.into_entries().into_iter().for_each(|(name, value)| writer.append(name, value));
    writer.finish(Kind::Document)
}

pub(super) fn object_to_array<'v>(arguments: Arguments<'_, 'v>) -> Result<Evaluated<'v>> {
    let document = arguments.read_present(0, Value::as_document, 40390, "a document")?;
    let Some(document) = document else { return Ok(Evaluated::NULL) };
    let mut pairs = ArrayWriter::default();
    for element in document.elements() {
        let mut pair = DocumentWriter::default();
        pair.append(b"k", Evaluated::string(&element.display_name()).or_null());
        pair.append(b"v", element.value);
        pairs.push(pair.finish(Kind::Document)?.or_null());
        pairs.check()?;
    }
    pairs.finish()
}
