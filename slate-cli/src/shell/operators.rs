//! The names of operators and stages that completion offers, sorted.

use std::collections::BTreeSet;

/// In filters.
static FILTERS: &str = "\
    $all $alwaysFalse $alwaysTrue $and $bitsAllClear $bitsAllSet $bitsAnyClear $bitsAnySet $comment $elemMatch $eq \
    $exists $expr $gt $gte $in $jsonSchema $lt $lte $mod $ne $nin $nor $not $options $or $regex $size $type";

/// In updates.
static UPDATES: &str = "\
    $addToSet $bit $currentDate $each $inc $max $min $mul $pop $position $pull $pullAll $push $rename $set \
    $setOnInsert $slice $sort $unset";

/// Stages of pipelines.
static STAGES: &str = "\
    $addFields $bucket $bucketAuto $count $documents $facet $fill $graphLookup $group $limit $lookup $match $merge $out $project $redact $replaceRoot $replaceWith $sample $set \
    $setWindowFields $skip $sort $sortByCount $unionWith $unset $unwind";

/// In expressions, accumulators and windows.
static EXPRESSIONS: &str = "\
    $abs $acos $acosh $add $addToSet $allElementsTrue $and $anyElementTrue $arrayElemAt $arrayToObject $asin $asinh \
    $atan $atan2 $atanh $avg $binarySize $bitAnd $bitNot $bitOr $bitXor $bottom $bottomN $bsonSize $ceil $cmp $concat \
    $concatArrays $cond $const $convert $cos $cosh $count $covariancePop $covarianceSamp $dateAdd $dateDiff \
    $dateFromParts $dateFromString $dateSubtract $dateToParts $dateToString $dateTrunc $dayOfMonth $dayOfWeek \
    $dayOfYear $degreesToRadians $denseRank $derivative $divide $documentNumber $eq $exp $expMovingAvg $filter $first \
    $firstN $floor $getField $gt $gte $hour $ifNull $in $indexOfArray $indexOfBytes $indexOfCP $integral $isArray \
    $isNumber $isoDayOfWeek $isoWeek $isoWeekYear $last $lastN $let $linearFill $literal $ln $locf $log $log10 $lt \
    $lte $ltrim $map $max $maxN $median $mergeObjects $millisecond $min $minN $minute $mod $month $multiply $ne $not \
    $objectToArray $or $percentile $pow $push $radiansToDegrees $rand $range $rank $reduce $regexFind $regexFindAll $regexMatch \
    $replaceAll $replaceOne $reverseArray $round $rtrim $second $setDifference $setEquals $setField $setIntersection \
    $setIsSubset $setUnion $shift $sigmoid $sin $sinh $size $slice $sortArray $split $sqrt $stdDevPop $stdDevSamp \
    $strLenBytes $strLenCP $strcasecmp $substr $substrBytes $substrCP $subtract $sum $switch $tan $tanh $toBool \
    $toDate $toDecimal $toDouble $toInt $toLong $toLower $toObjectId $toString $toUUID $toUpper $top $topN $trim $trunc \
    $tsIncrement $tsSecond $type $unsetField $week $year $zip";

/// The names that can follow in a line of these words.
pub(super) fn of(words: &[&str]) -> impl Iterator<Item = &'static str> {
    let tables: &[&str] = if words.contains(&"aggregate") {
        &[STAGES, EXPRESSIONS, FILTERS]
    } else if words.contains(&"update") {
        &[FILTERS, UPDATES]
    } else {
        &[FILTERS]
    };
    let names: BTreeSet<&str> = tables.iter().flat_map(|table| table.split_whitespace()).collect();
    names.into_iter()
}

#[cfg(test)]
mod tests {
    use bson::{Document, bson, doc};
    use slate_core::{Database, Result};

    use super::*;

    /// Whether one of the uses of a name does not fail because the name is unknown.
    fn is_known<const N: usize>(uses: [Result<()>; N]) -> bool {
        let unknown = |error: slate_core::Error| {
            let message = error.to_string().to_lowercase();
            ["unknown", "unrecognized", "not supported"].iter().any(|word| message.contains(word))
        };
        uses.into_iter().any(|result| result.err().is_none_or(|error| !unknown(error)))
    }

    #[test]
    fn every_name_is_known() {
        let collection = Database::open("memory:").unwrap().collection::<Document>("c");
        collection.insert_one(&doc! { "a": [1] }).unwrap();
        let find = |filter: Document| collection.find(filter).run().map(drop);
        let update = |update: Document| collection.update_one(doc! {}, update).run().map(drop);
        let aggregate = |stage: Document| collection.aggregate([stage]).run().map(drop);
        for name in FILTERS.split_whitespace() {
            assert!(is_known([find(doc! { name: 1 }), find(doc! { "a": { name: 1 } })]), "{name}");
        }
        for name in UPDATES.split_whitespace() {
            let each = doc! { "$push": { "a": { "$each": [], name: bson!([]) } } };
            assert!(is_known([update(doc! { name: { "a": 1 } }), update(each)]), "{name}");
        }
        for name in STAGES.split_whitespace() {
            assert!(is_known([aggregate(doc! { name: 1 })]), "{name}");
        }
        for name in EXPRESSIONS.split_whitespace() {
            let group = doc! { "$group": { "_id": 1, "a": { name: 1 } } };
            let window = doc! { "$setWindowFields": { "sortBy": { "a": 1 }, "output": { "b": { name: {} } } } };
            let project = doc! { "$project": { "b": { name: 1 } } };
            assert!(is_known([aggregate(project), aggregate(group), aggregate(window)]), "{name}");
        }
    }
}
