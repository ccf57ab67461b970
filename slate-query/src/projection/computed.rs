//! Computed fields: expressions and literals. Slate does not support them; those that are also invalid in MongoDB have MongoDB's
//! code.

use super::field_path;
use crate::{
    Code, Error, Result,
    number::Number,
    raw::{Kind, Value},
};

/// The names of MongoDB's aggregation expressions, which are computed fields in a projection.
static EXPRESSIONS: &str = "
    $_internalFindAllValuesAtPath $_internalFleBetween $_internalFleEq $_internalIndexKey $_internalJsEmit
    $_internalKeyStringValue $_internalOwningShard $_testApiVersion $abs $accumulator $acos $acosh $add $addToSet
    $allElementsTrue $and $anyElementTrue $arrayElemAt $arrayToObject $asin $asinh $atan $atan2 $atanh $avg
    $binarySize $bitAnd $bitNot $bitOr $bitXor $bsonSize $ceil $cmp $concat $concatArrays $cond $const $convert
    $cos $cosh $createObjectId $currentDate $dateAdd $dateDiff $dateFromParts $dateFromString $dateSubtract
    $dateToParts $dateToString $dateTrunc $dayOfMonth $dayOfWeek $dayOfYear $degreesToRadians $divide $eq $exp
    $expr $filter $first $firstN $floor $function $getField $gt $gte $hour $ifNull $in $indexOfArray $indexOfBytes
    $indexOfCP $isArray $isNumber $isoDayOfWeek $isoWeek $isoWeekYear $last $lastN $let $literal $ln $log $log10
    $lt $lte $ltrim $map $max $maxN $median $mergeObjects $meta $millisecond $min $minN $minute $mod $month
    $multiply $ne $not $objectToArray $or $percentile $pow $radiansToDegrees $rand $range $reduce $regexFind
    $regexFindAll $regexMatch $replaceAll $replaceOne $reverseArray $round $rtrim $second $setDifference
    $setEquals $setField $setIntersection $setIsSubset $setUnion $sigmoid $sin $sinh $size $slice $sortArray
    $split $sqrt $stdDevPop $stdDevSamp $strLenBytes $strLenCP $strcasecmp $substr $substrBytes $substrCP
    $subtract $sum $switch $tan $tanh $toBool $toDate $toDecimal $toDouble $toHashedIndexKey $toInt $toLong
    $toLower $toObjectId $toString $toUUID $toUpper $trim $trunc $tsIncrement $tsSecond $type $unsetField $week
    $year $zip
";

/// The operands of `$meta`.
static METADATA: &str = "
    geoNearDistance geoNearPoint indexKey randVal recordId score scoreDetails searchHighlights
    searchRootDocumentId searchScore searchScoreDetails searchSequenceToken sortKey stream textScore
    timeseriesBucketMaxTime timeseriesBucketMinTime vectorSearchDistance vectorSearchScore
";

/// The variables that are defined in every expression.
static VARIABLES: &[&str] = &["CLUSTER_TIME", "CURRENT", "NOW", "REMOVE", "ROOT", "SEARCH_META", "USER_ROLES"];

/// The code of errors that have no specific code.
const LITERAL: &str = "computed projections";

pub(super) fn is_expression(name: &str) -> bool {
    EXPRESSIONS.split_ascii_whitespace().any(|expression| expression == name)
}

/// The error for the expression `name` with this argument.
pub(super) fn expression(name: &str, argument: Value<'_>) -> Error {
    let checked = match name {
        "$meta" => meta(argument),
        "$slice" => slice(argument),
        _ => Ok(()),
    };
    checked.err().unwrap_or_else(|| Error::unsupported(name))
}

/// The error for a literal, a field path or a variable.
pub(super) fn literal(value: Value<'_>) -> Error {
    let checked = match value.as_str().and_then(|text| text.strip_prefix('$')) {
        Some(reference) => field(reference),
        None => Ok(()),
    };
    checked.err().unwrap_or_else(|| Error::unsupported(LITERAL))
}

/// Checks a field path or a variable, without its first `$`.
fn field(reference: &str) -> Result<()> {
    let Some(variable) = reference.strip_prefix('$') else {
        return match reference {
            "" => Err(Error::new(Code(16872), "'$' by itself is not a field path")),
            path => field_path::names(path).map(drop),
        };
    };
    let name = variable.split('.').next().unwrap_or_default();
    if name.is_empty() {
        return Err(Error::new(Code(16869), "a variable's name may not be empty"));
    }
    if !VARIABLES.contains(&name) {
        return Err(Error::new(Code(17276), format!("use of undefined variable: {name}")));
    }
    field_path::names(variable).map(drop)
}

fn meta(argument: Value<'_>) -> Result<()> {
    match argument.as_str() {
        None => Err(Error::new(Code(17307), "$meta takes a string")),
        Some("textScore") => Err(Error::new(Code(40218), "the query projects the text score without a text search")),
        Some(name) if METADATA.split_ascii_whitespace().any(|metadata| metadata == name) => Ok(()),
        Some(name) => Err(Error::new(Code(17308), format!("unsupported argument to $meta: {name}"))),
    }
}

/// Checks the constant arguments of the expression `$slice`.
fn slice(argument: Value<'_>) -> Result<()> {
    let arguments: Vec<Value<'_>> = match argument.as_array() {
        Some(array) => array.values().collect(),
        None => vec![argument],
    };
    let (array, counts) = match arguments.as_slice() {
        [array, counts @ ..] if matches!(counts.len(), 1 | 2) => (*array, counts),
        _ => {
            let message = format!("$slice takes two or three arguments, not {}", arguments.len());
            return Err(Error::new(Code(28667), message));
        }
    };
    if !arguments.iter().all(|value| is_constant(*value)) || arguments.iter().take(2).any(|value| is_nullish(*value)) {
        return Ok(());
    }
    if array.kind() != Kind::Array {
        return Err(Error::new(Code(28724), "the first argument of $slice must be an array"));
    }
    let codes = [(Code(28725), Code(28726)), (Code(28727), Code(28728))];
    for (count, (kind, range)) in counts.iter().zip(codes).filter(|(count, _)| !is_nullish(**count)) {
        let number = Number::of(*count).ok_or_else(|| Error::new(kind, "the counts of $slice must be numbers"))?;
        let whole = number.to_i64().and_then(|whole| i32::try_from(whole).ok());
        let whole = whole.ok_or_else(|| Error::new(range, "the counts of $slice must be 32-bit integers"))?;
        if kind == Code(28727) && whole <= 0 {
            return Err(Error::new(Code(28729), "the third argument of $slice must be positive"));
        }
    }
    Ok(())
}

fn is_nullish(value: Value<'_>) -> bool {
    matches!(value.kind(), Kind::Null | Kind::Undefined)
}

/// Whether an expression is a constant: it contains no field path and no operator.
fn is_constant(value: Value<'_>) -> bool {
    if let Some(array) = value.as_array() {
        return array.values().all(is_constant);
    }
    if let Some(document) = value.as_document() {
        return document.elements().all(|element| !element.name.starts_with(b"$") && is_constant(element.value));
    }
    value.as_str().is_none_or(|text| !text.starts_with('$'))
}
