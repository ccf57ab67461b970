//! The operators of expressions, by family, and the table of their names.
//!
//! To add an operator:
//!
//! 1. Write it: a function of the values of its operands ([`FunctionBody`]), or, if it evaluates its operands itself, a type
//!    that implements [`Operator`](super::node::Operator) and a function that parses it.
//! 2. Add its line in [`OPERATORS`], which is sorted by name.
//! 3. Describe its behaviour in `tests/expressions.rs` and in `docs/aggregation.md`.
//!
//! Operators that MongoDB has and Slate does not support are also in the table, and fail by name.

mod accumulated;
mod arithmetic;
mod array;
mod compare;
mod convert;
pub(super) mod date;
mod functions;
mod hashed;
mod logical;
mod membership;
mod meta;
mod misc;
mod named;
mod object;
mod percentile;
mod ranges;
mod regex;
mod set;
mod string;
mod text;
mod variables;

pub(crate) use arithmetic::DIVISION_BY_ZERO;
pub(crate) use ranges::ranges;

use super::{
    Expression, Variables,
    arguments::{ANY, Function, FunctionBody, NullEnds, Operands},
};
use crate::{Result, raw::Value};

/// Parses an operator with this name and operand.
type ParseOperator = fn(&str, Value<'_>, &Variables) -> Result<Expression>;

/// A line of the table.
#[derive(Debug)]
pub(super) enum OperatorEntry {
    Function(Function),
    Operator(ParseOperator),
    /// MongoDB has the operator, Slate does not.
    Unsupported,
}

type Line = (&'static str, OperatorEntry);

const fn with_operands(
    name: &'static str,
    arity: (usize, usize),
    call: FunctionBody,
    operands: Operands,
    null_ends: NullEnds,
) -> Line {
    (name, OperatorEntry::Function(Function { name, arity, call, operands, null_ends, constant_array: None }))
}

/// Makes the function refuse a constant operand that is no array; see [`Function::constant_array`].
const fn preparing_array(line: Line, place: usize, code: i32) -> Line {
    match line {
        (name, OperatorEntry::Function(function)) => {
            (name, OperatorEntry::Function(Function { constant_array: Some((place, code)), ..function }))
        }
        other => other,
    }
}

const fn function(name: &'static str, arity: (usize, usize), call: FunctionBody) -> Line {
    with_operands(name, arity, call, Operands::AsWritten, NullEnds::Never)
}

/// Returns a function whose value is null if its first operand is; the others are not evaluated then.
const fn of_first(name: &'static str, arity: (usize, usize), call: FunctionBody) -> Line {
    with_operands(name, arity, call, Operands::AsWritten, NullEnds::AtFirst)
}

/// Returns a function that compares its operands and returns none of them.
const fn comparing(name: &'static str, arity: (usize, usize), call: FunctionBody) -> Line {
    with_operands(name, arity, call, Operands::Compared, NullEnds::Never)
}

/// Returns a function of any number of operands. The first null operand makes it null; those after it are not evaluated.
const fn one_by_one(name: &'static str, operands: Operands, call: FunctionBody) -> Line {
    with_operands(name, ANY, call, operands, NullEnds::Anywhere)
}

/// Returns an accumulator whose value does not depend on the order of its operands.
const fn accumulating(name: &'static str, call: FunctionBody) -> Line {
    with_operands(name, ANY, call, Operands::Accumulated, NullEnds::Never)
}

const fn operator(name: &'static str, parse: ParseOperator) -> Line {
    (name, OperatorEntry::Operator(parse))
}

const fn unsupported(name: &'static str) -> Line {
    (name, OperatorEntry::Unsupported)
}

const ONE: (usize, usize) = (1, 1);
const TWO: (usize, usize) = (2, 2);
const THREE: (usize, usize) = (3, 3);

static OPERATORS: &[Line] = &[
    function("$abs", ONE, arithmetic::abs),
    function("$acos", ONE, functions::acos),
    function("$acosh", ONE, functions::acosh),
    one_by_one("$add", Operands::LeftToRight, arithmetic::add),
    function("$allElementsTrue", ONE, set::all_true),
    operator("$and", logical::and),
    function("$anyElementTrue", ONE, set::any_true),
    function("$arrayElemAt", TWO, array::array_elem_at),
    function("$arrayToObject", ONE, array::array_to_object),
    function("$asin", ONE, functions::asin),
    function("$asinh", ONE, functions::asinh),
    function("$atan", ONE, functions::atan),
    function("$atan2", TWO, functions::atan2),
    function("$atanh", ONE, functions::atanh),
    function("$avg", ANY, accumulated::over),
    function("$binarySize", ONE, misc::binary_size),
    one_by_one("$bitAnd", Operands::ConstantsLast, misc::bit_and),
    function("$bitNot", ONE, misc::bit_not),
    one_by_one("$bitOr", Operands::ConstantsLast, misc::bit_or),
    one_by_one("$bitXor", Operands::ConstantsLast, misc::bit_xor),
    function("$bsonSize", ONE, misc::bson_size),
    function("$ceil", ONE, arithmetic::ceil),
    comparing("$cmp", TWO, compare::cmp),
    one_by_one("$concat", Operands::Grouped, string::concat),
    one_by_one("$concatArrays", Operands::Grouped, array::concat_arrays),
    operator("$cond", logical::cond),
    operator("$const", misc::literal),
    operator("$convert", convert::convert_to),
    function("$cos", ONE, functions::cos),
    function("$cosh", ONE, functions::cosh),
    operator("$createObjectId", misc::create_object_id),
    operator("$dateAdd", date::arithmetic::parse),
    operator("$dateDiff", date::difference::parse),
    operator("$dateFromParts", date::from_parts::parse),
    operator("$dateFromString", date::from_string::parse),
    operator("$dateSubtract", date::arithmetic::parse),
    operator("$dateToParts", date::to_parts::parse),
    operator("$dateToString", date::format::parse),
    operator("$dateTrunc", date::truncate::parse),
    operator("$dayOfMonth", date::part::day_of_month),
    operator("$dayOfWeek", date::part::day_of_week),
    operator("$dayOfYear", date::part::day_of_year),
    function("$degreesToRadians", ONE, functions::degrees_to_radians),
    function("$divide", TWO, arithmetic::divide),
    comparing("$eq", TWO, compare::eq),
    function("$exp", ONE, functions::exp),
    operator("$expr", misc::expr),
    operator("$filter", variables::filter),
    function("$first", ONE, array::first),
    operator("$firstN", accumulated::several),
    function("$floor", ONE, arithmetic::floor),
    unsupported("$function"),
    operator("$getField", object::get_field),
    comparing("$gt", TWO, compare::gt),
    comparing("$gte", TWO, compare::gte),
    operator("$hour", date::part::hour),
    operator("$ifNull", logical::if_null),
    operator("$in", membership::parse),
    preparing_array(
        with_operands("$indexOfArray", (2, 4), array::index_of_array, Operands::Compared, NullEnds::AtFirst),
        0,
        50809,
    ),
    of_first("$indexOfBytes", (2, 4), string::index_of_bytes),
    of_first("$indexOfCP", (2, 4), string::index_of_code_points),
    function("$isArray", ONE, array::is_array),
    function("$isNumber", ONE, convert::is_number),
    operator("$isoDayOfWeek", date::part::iso_day_of_week),
    operator("$isoWeek", date::part::iso_week),
    operator("$isoWeekYear", date::part::iso_week_year),
    function("$last", ONE, array::last),
    operator("$lastN", accumulated::several),
    operator("$let", variables::let_in),
    operator("$literal", misc::literal),
    function("$ln", ONE, functions::ln),
    function("$log", TWO, functions::log),
    function("$log10", ONE, functions::log10),
    comparing("$lt", TWO, compare::lt),
    comparing("$lte", TWO, compare::lte),
    operator("$ltrim", text::trim),
    operator("$map", variables::map),
    accumulating("$max", accumulated::over),
    operator("$maxN", accumulated::several),
    operator("$median", percentile::parse),
    function("$mergeObjects", ANY, object::merge_objects),
    operator("$meta", meta::meta),
    operator("$millisecond", date::part::millisecond),
    accumulating("$min", accumulated::over),
    operator("$minN", accumulated::several),
    operator("$minute", date::part::minute),
    function("$mod", TWO, arithmetic::modulo),
    operator("$month", date::part::month),
    one_by_one("$multiply", Operands::LeftToRight, arithmetic::multiply),
    comparing("$ne", TWO, compare::ne),
    function("$not", ONE, logical::not),
    function("$objectToArray", ONE, array::object_to_array),
    operator("$or", logical::or),
    operator("$percentile", percentile::parse),
    function("$pow", TWO, functions::pow),
    function("$radiansToDegrees", ONE, functions::radians_to_degrees),
    operator("$rand", misc::rand),
    function("$range", (2, 3), array::range_of),
    operator("$reduce", variables::reduce),
    operator("$regexFind", regex::parse),
    operator("$regexFindAll", regex::parse),
    operator("$regexMatch", regex::parse),
    operator("$replaceAll", text::replace),
    operator("$replaceOne", text::replace),
    function("$reverseArray", ONE, array::reverse_array),
    of_first("$round", (1, 2), arithmetic::round),
    operator("$rtrim", text::trim),
    operator("$second", date::part::second),
    function("$setDifference", TWO, set::difference),
    operator("$setEquals", set::parse_equals),
    operator("$setField", object::set_field),
    one_by_one("$setIntersection", Operands::ConstantsLast, set::intersection),
    preparing_array(comparing("$setIsSubset", TWO, set::is_subset), 1, 17311),
    one_by_one("$setUnion", Operands::ConstantsLast, set::union),
    operator("$sigmoid", functions::parse_sigmoid),
    function("$sin", ONE, functions::sin),
    function("$sinh", ONE, functions::sinh),
    function("$size", ONE, array::size),
    function("$slice", (2, 3), array::slice),
    operator("$sortArray", misc::sort_array),
    function("$split", TWO, string::split),
    function("$sqrt", ONE, functions::sqrt),
    function("$stdDevPop", ANY, accumulated::over),
    function("$stdDevSamp", ANY, accumulated::over),
    function("$strLenBytes", ONE, string::length_in_bytes),
    function("$strLenCP", ONE, string::length_in_code_points),
    function("$strcasecmp", TWO, string::strcasecmp),
    function("$substr", THREE, string::substr_bytes),
    function("$substrBytes", THREE, string::substr_bytes),
    function("$substrCP", THREE, string::substr_code_points),
    function("$subtract", TWO, arithmetic::subtract),
    accumulating("$sum", accumulated::over),
    operator("$switch", logical::switch),
    function("$tan", ONE, functions::tan),
    function("$tanh", ONE, functions::tanh),
    operator("$toBool", convert::to_type),
    operator("$toDate", convert::to_type),
    operator("$toDecimal", convert::to_type),
    operator("$toDouble", convert::to_type),
    function("$toHashedIndexKey", ONE, hashed::to_hashed_index_key),
    operator("$toInt", convert::to_type),
    operator("$toLong", convert::to_type),
    function("$toLower", ONE, string::to_lower),
    operator("$toObjectId", convert::to_type),
    operator("$toString", convert::to_type),
    operator("$toUUID", convert::to_type),
    function("$toUpper", ONE, string::to_upper),
    operator("$trim", text::trim),
    of_first("$trunc", (1, 2), arithmetic::trunc),
    function("$tsIncrement", ONE, misc::ts_increment),
    function("$tsSecond", ONE, misc::ts_second),
    function("$type", ONE, convert::type_name),
    operator("$unsetField", object::set_field),
    operator("$week", date::part::week_of_year),
    operator("$year", date::part::year),
    operator("$zip", misc::zip),
];

/// Returns the names of the supported operators.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    OPERATORS.iter().filter(|(_, entry)| !matches!(entry, OperatorEntry::Unsupported)).map(|(name, _)| *name)
}

/// Returns the line of this name; `None` if MongoDB has no such operator.
pub(super) fn find(name: &str) -> Option<&'static OperatorEntry> {
    let place = OPERATORS.binary_search_by(|(operator, _)| (*operator).cmp(name)).ok()?;
    OPERATORS.get(place).map(|(_, entry)| entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_by_name() {
        assert!(OPERATORS.is_sorted_by_key(|(name, _)| name));
    }
}
