//! Expressions over arrays and objects of n elements, with n operands, and accumulators and windows over n rows.

use bson::{Bson, Document, bson, doc};

use super::{Call, fields, list, numbers};

/// Returns expressions for large documents.
fn expressions(n: usize) -> Vec<(&'static str, Bson)> {
    let size = n as i32;
    let name = |at: i32| format!("f{at}");
    vec![
        ("$in", bson!({ "$in": ["$v", "$a"] })),
        ("$in constants", bson!({ "$in": ["$v", numbers(n)] })),
        (
            "$filter with $in constants",
            bson!({ "$filter": { "input": "$a", "cond": { "$in": ["$$this", numbers(n)] } } }),
        ),
        (
            "$filter with $in texts",
            bson!({ "$filter": { "input": "$s", "cond": { "$in": ["$$this", list(n, |at| name(at).into())] } } }),
        ),
        ("$filter with $in", bson!({ "$filter": { "input": "$a", "cond": { "$in": ["$$this", "$b"] } } })),
        (
            "$filter with not $in",
            bson!({ "$filter": { "input": "$a", "cond": { "$not": { "$in": ["$$this", numbers(n)] } } } }),
        ),
        ("$filter with $or", bson!({ "$filter": { "input": "$a", "cond": { "$gt": ["$$this", 5] } } })),
        ("$map", bson!({ "$map": { "input": "$a", "in": { "$add": ["$$this", 1] } } })),
        ("$map of documents", bson!({ "$map": { "input": "$d", "in": { "$mergeObjects": ["$$this", { "k": 1 }] } } })),
        (
            "$map with $indexOfArray constants",
            bson!({ "$map": { "input": "$a", "in": { "$indexOfArray": [numbers(n), "$$this"] } } }),
        ),
        (
            "$map with $arrayElemAt",
            bson!({ "$map": { "input": { "$range": [0, size] }, "in": { "$arrayElemAt": ["$a", "$$this"] } } }),
        ),
        (
            "$map with $arrayElemAt constants",
            bson!({ "$map": { "input": "$a", "in": { "$arrayElemAt": [numbers(n), "$$this"] } } }),
        ),
        (
            "$map with $getField",
            bson!({ "$map": { "input": "$a", "in": { "$getField": { "field": { "$concat": ["f", { "$toString": "$$this" }] }, "input": "$o" } } } }),
        ),
        (
            "$map with $setIsSubset",
            bson!({ "$map": { "input": "$a", "in": { "$setIsSubset": [["$$this"], numbers(n)] } } }),
        ),
        (
            "$map with $setIntersection",
            bson!({ "$map": { "input": "$a", "in": { "$setIntersection": [["$$this"], numbers(n)] } } }),
        ),
        (
            "$map with $switch",
            bson!({ "$map": { "input": { "$slice": ["$a", 3] }, "in": { "$switch": { "branches": list(n, |at| bson!({ "case": { "$eq": ["$$this", at] }, "then": at })), "default": 0 } } } }),
        ),
        (
            "$reduce with $add",
            bson!({ "$reduce": { "input": "$a", "initialValue": 0, "in": { "$add": ["$$value", "$$this"] } } }),
        ),
        (
            "$reduce with $max",
            bson!({ "$reduce": { "input": "$d", "initialValue": null, "in": { "$max": ["$$value", "$$this.x"] } } }),
        ),
        (
            "$reduce with $concatArrays",
            bson!({ "$reduce": { "input": "$l", "initialValue": [], "in": { "$concatArrays": ["$$value", "$$this"] } } }),
        ),
        (
            "$reduce with $setUnion",
            bson!({ "$reduce": { "input": "$l", "initialValue": [], "in": { "$setUnion": ["$$value", "$$this"] } } }),
        ),
        (
            "$reduce with $mergeObjects",
            bson!({ "$reduce": { "input": "$p", "initialValue": {}, "in": { "$mergeObjects": ["$$value", { "$arrayToObject": [["$$this"]] }] } } }),
        ),
        (
            "$reduce with $concat",
            bson!({ "$reduce": { "input": "$s", "initialValue": "", "in": { "$concat": ["$$value", "$$this"] } } }),
        ),
        ("$sortArray", bson!({ "$sortArray": { "input": "$a", "sortBy": 1 } })),
        ("$sortArray of documents", bson!({ "$sortArray": { "input": "$d", "sortBy": { "y": 1, "x": -1 } } })),
        ("$setUnion", bson!({ "$setUnion": ["$a", "$b", "$s"] })),
        ("$setUnion of constants", bson!({ "$setUnion": ["$a", numbers(n)] })),
        ("$setUnion of many", bson!({ "$setUnion": list(n, |at| bson!(["$v", at])) })),
        ("$setUnion of one many times", bson!({ "$setUnion": list(n, |_| bson!(["$v"])) })),
        ("$setIntersection", bson!({ "$setIntersection": ["$a", "$b"] })),
        ("$setIntersection of many", bson!({ "$setIntersection": list(n, |at| bson!(["$v", at])) })),
        ("$setDifference", bson!({ "$setDifference": ["$a", "$b"] })),
        ("$setDifference of constants", bson!({ "$setDifference": ["$a", numbers(n)] })),
        ("$setEquals", bson!({ "$setEquals": ["$a", "$b"] })),
        ("$setEquals of equal", bson!({ "$setEquals": ["$a", numbers(n)] })),
        ("$setEquals of many", bson!({ "$setEquals": list(n, |_| bson!(["$v"])) })),
        ("$setIsSubset", bson!({ "$setIsSubset": ["$b", "$a"] })),
        ("$setIsSubset of documents", bson!({ "$setIsSubset": ["$d", "$d"] })),
        ("$setUnion of documents", bson!({ "$setUnion": ["$d", "$l", "$d"] })),
        ("$allElementsTrue", bson!({ "$allElementsTrue": "$a" })),
        ("$anyElementTrue", bson!({ "$anyElementTrue": "$a" })),
        ("$concatArrays", bson!({ "$concatArrays": ["$a", "$b", "$s", "$d"] })),
        ("$concatArrays of many", bson!({ "$concatArrays": list(n, |at| bson!(["$v", at])) })),
        ("$zip", bson!({ "$zip": { "inputs": ["$a", "$s", "$d"], "useLongestLength": true } })),
        ("$zip of many", bson!({ "$zip": { "inputs": list(n, |at| bson!(["$v", at])) } })),
        (
            "$zip with defaults",
            bson!({ "$zip": { "inputs": ["$a", ["$v"]], "useLongestLength": true, "defaults": [1, 2] } }),
        ),
        ("$arrayToObject", bson!({ "$arrayToObject": "$p" })),
        (
            "$arrayToObject of documents",
            bson!({ "$arrayToObject": { "$map": { "input": "$s", "in": { "k": "$$this", "v": 1 } } } }),
        ),
        ("$arrayToObject of repeated names", bson!({ "$arrayToObject": { "$concatArrays": ["$p", "$p"] } })),
        ("$objectToArray", bson!({ "$objectToArray": "$o" })),
        ("$objectToArray of $arrayToObject", bson!({ "$arrayToObject": { "$objectToArray": "$o" } })),
        ("$mergeObjects", bson!({ "$mergeObjects": ["$o", "$o", { "$arrayToObject": "$p" }] })),
        ("$mergeObjects of an array", bson!({ "$mergeObjects": "$d" })),
        ("$mergeObjects of many", bson!({ "$mergeObjects": list(n, |at| bson!({ name(at): "$v" })) })),
        ("$setField", bson!({ "$setField": { "field": "f3", "input": "$o", "value": 1 } })),
        ("$unsetField", bson!({ "$unsetField": { "field": "f3", "input": "$o" } })),
        ("$getField", bson!({ "$getField": { "field": "f3", "input": "$o" } })),
        ("$maxN", bson!({ "$maxN": { "n": size / 2, "input": "$a" } })),
        ("$minN", bson!({ "$minN": { "n": size / 2, "input": "$s" } })),
        ("$firstN", bson!({ "$firstN": { "n": size / 2, "input": "$a" } })),
        ("$lastN", bson!({ "$lastN": { "n": size / 2, "input": "$a" } })),
        ("$sum", bson!({ "$sum": "$a" })),
        ("$max", bson!({ "$max": "$s" })),
        ("$avg", bson!({ "$avg": "$a" })),
        ("$stdDevPop", bson!({ "$stdDevPop": "$a" })),
        ("$median", bson!({ "$median": { "input": "$a", "method": "approximate" } })),
        (
            "$percentile",
            bson!({ "$percentile": { "input": "$a", "p": list(n, |at| (f64::from(at) / f64::from(size)).into()), "method": "approximate" } }),
        ),
        ("$reverseArray", bson!({ "$reverseArray": "$a" })),
        ("$slice", bson!({ "$slice": ["$a", -(size / 2), size / 3] })),
        ("$indexOfArray", bson!({ "$indexOfArray": ["$a", -1] })),
        ("$arrayElemAt", bson!({ "$arrayElemAt": ["$a", -1] })),
        ("$range", bson!({ "$range": [0, size] })),
        ("$size", bson!({ "$size": "$a" })),
        ("$eq of arrays", bson!({ "$eq": ["$a", "$b"] })),
        ("$eq of equal documents", bson!({ "$eq": ["$o", "$o"] })),
        ("$path of documents", "$d.x".into()),
        ("$path of arrays of documents", "$d.z".into()),
        (
            "$let of many",
            bson!({ "$let": { "vars": fields(n, |at| (name(at), "$v".into())), "in": { "$add": list(n, |at| format!("$${}", name(at)).into()) } } }),
        ),
        (
            "$switch",
            bson!({ "$switch": { "branches": list(n, |at| bson!({ "case": { "$eq": ["$v", -at] }, "then": at })), "default": 0 } }),
        ),
        (
            "$cond nested",
            list(80, |at| at.into())
                .into_iter()
                .fold(bson!("$v"), |inner, at| bson!({ "$cond": [{ "$eq": ["$v", 3] }, at, inner] })),
        ),
        ("$ifNull", bson!({ "$ifNull": list(n, |at| format!("$none{at}").into()) })),
        ("$or", bson!({ "$or": list(n, |at| bson!({ "$eq": ["$v", -at - 1] })) })),
        ("$and", bson!({ "$and": list(n, |at| bson!({ "$ne": ["$v", -at - 1] })) })),
        ("$add", bson!({ "$add": list(n, |at| bson!({ "$multiply": ["$v", at] })) })),
        ("$add of fields", bson!({ "$add": list(n, |at| format!("$o.f{at}").into()) })),
        ("$add of top fields", bson!({ "$add": list(n, |at| format!("$f{at}").into()) })),
        ("$multiply", bson!({ "$multiply": list(n, |_| "$v".into()) })),
        ("$concat", bson!({ "$concat": list(n, |at| bson!({ "$toString": at })) })),
        ("$max of many", bson!({ "$max": list(n, |at| bson!({ "$add": ["$v", at] })) })),
        ("$sum of many", bson!({ "$sum": list(n, |at| bson!({ "$add": ["$v", at] })) })),
        ("$avg of many", bson!({ "$avg": list(n, |at| bson!({ "$add": ["$v", at] })) })),
        ("$bitOr", bson!({ "$bitOr": list(n, |at| bson!({ "$add": [{ "$toInt": "$v" }, at] })) })),
        ("a document", Bson::Document(fields(n, |at| (name(at), "$v".into())))),
        ("a document of paths", Bson::Document(fields(n, |at| (name(at), format!("$o.f{at}").into())))),
        ("a document of constants", Bson::Document(fields(n, |at| (name(at), bson!({ "$literal": at }))))),
        ("an array", Bson::Array(list(n, |at| bson!(["$v", at])))),
        ("$literal", bson!({ "$literal": numbers(n) })),
        ("$split", bson!({ "$split": ["$t", " "] })),
        ("$replaceAll", bson!({ "$replaceAll": { "input": "$t", "find": "b", "replacement": "cd" } })),
        ("$regexFindAll", bson!({ "$regexFindAll": { "input": "$t", "regex": "(a)(b)?" } })),
        ("$regexFindAll of empty matches", bson!({ "$regexFindAll": { "input": "$t", "regex": "(?=b)" } })),
        ("$regexMatch", bson!({ "$regexMatch": { "input": "$t", "regex": "z$" } })),
        ("$trim", bson!({ "$trim": { "input": "$t", "chars": "ab " } })),
        ("$trim of many characters", bson!({ "$trim": { "input": "$t", "chars": "$t" } })),
        ("$indexOfCP", bson!({ "$indexOfCP": ["$t", "zz"] })),
        (
            "$indexOfBytes of a long text",
            bson!({ "$indexOfBytes": ["$t", { "$concat": [{ "$substrCP": ["$t", 0, size] }, "z"] }] }),
        ),
        ("$substrCP", bson!({ "$substrCP": ["$t", size, size] })),
        ("$toUpper", bson!({ "$toUpper": "$t" })),
        ("$strcasecmp", bson!({ "$strcasecmp": ["$t", "$t"] })),
        ("$toString", bson!({ "$toString": "$t" })),
        (
            "$dateToString",
            bson!({ "$dateToString": { "date": bson::DateTime::from_millis(0), "format": "%Y".repeat(n) } }),
        ),
    ]
}

/// Accumulators over n rows, in groups and windows.
fn accumulators(n: usize) -> Vec<(&'static str, Document)> {
    let half = n as i32 / 2;
    vec![
        ("$addToSet", doc! { "$addToSet": "$v" }),
        ("$addToSet of few", doc! { "$addToSet": "$t" }),
        ("$addToSet of documents", doc! { "$addToSet": "$d" }),
        ("$push", doc! { "$push": "$v" }),
        ("$concatArrays", doc! { "$concatArrays": "$a" }),
        ("$setUnion", doc! { "$setUnion": "$a" }),
        ("$mergeObjects", doc! { "$mergeObjects": { "$arrayToObject": [[["$f", "$v"]]] } }),
        ("$mergeObjects of the same", doc! { "$mergeObjects": "$d" }),
        ("$sum", doc! { "$sum": "$v" }),
        ("$avg", doc! { "$avg": "$v" }),
        ("$max", doc! { "$max": "$v" }),
        ("$min", doc! { "$min": "$f" }),
        ("$first", doc! { "$first": "$v" }),
        ("$last", doc! { "$last": "$v" }),
        ("$count", doc! { "$count": {} }),
        ("$stdDevPop", doc! { "$stdDevPop": "$v" }),
        ("$topN", doc! { "$topN": { "n": half, "sortBy": { "v": 1 }, "output": "$v" } }),
        ("$bottomN", doc! { "$bottomN": { "n": half, "sortBy": { "t": 1, "f": -1 }, "output": "$v" } }),
        ("$maxN", doc! { "$maxN": { "n": half, "input": "$v" } }),
        ("$minN", doc! { "$minN": { "n": half, "input": "$f" } }),
        ("$firstN", doc! { "$firstN": { "n": half, "input": "$v" } }),
        ("$lastN", doc! { "$lastN": { "n": half, "input": "$v" } }),
        ("$topN of few", doc! { "$topN": { "n": 3, "sortBy": { "v": 1 }, "output": "$v" } }),
        ("$bottomN of few", doc! { "$bottomN": { "n": 3, "sortBy": { "v": 1 }, "output": "$v" } }),
        ("$maxN of few", doc! { "$maxN": { "n": 3, "input": "$v" } }),
        ("$minN of few", doc! { "$minN": { "n": 3, "input": "$f" } }),
        ("$firstN of few", doc! { "$firstN": { "n": 3, "input": "$v" } }),
        ("$lastN of few", doc! { "$lastN": { "n": 3, "input": "$v" } }),
        ("$top", doc! { "$top": { "sortBy": { "v": 1 }, "output": "$v" } }),
        ("$bottom", doc! { "$bottom": { "sortBy": { "v": 1 }, "output": "$v" } }),
        ("$median", doc! { "$median": { "input": "$v", "method": "approximate" } }),
        ("$percentile", doc! { "$percentile": { "input": "$v", "p": [0.5, 0.9], "method": "approximate" } }),
    ]
}

/// The functions of windows that are no accumulators.
fn window_functions() -> Vec<(&'static str, Document)> {
    vec![
        ("$covariancePop", doc! { "$covariancePop": ["$v", "$t"] }),
        ("$minMaxScaler", doc! { "$minMaxScaler": { "input": "$v" } }),
        ("$rank", doc! { "$rank": {} }),
        ("$denseRank", doc! { "$denseRank": {} }),
        ("$documentNumber", doc! { "$documentNumber": {} }),
        ("$shift", doc! { "$shift": { "output": "$v", "by": 5 } }),
        ("$expMovingAvg", doc! { "$expMovingAvg": { "input": "$v", "N": 5 } }),
        ("$linearFill", doc! { "$linearFill": "$v" }),
        ("$locf", doc! { "$locf": "$v" }),
        ("$integral", doc! { "$integral": { "input": "$t" } }),
        ("$derivative", doc! { "$derivative": { "input": "$t" } }),
    ]
}

/// The values of these grow with the window.
fn is_large(name: &str) -> bool {
    let is_list = [
        "$addToSet",
        "$addToSet of documents",
        "$push",
        "$concatArrays",
        "$setUnion",
        "$mergeObjects",
        "$topN",
        "$bottomN",
        "$maxN",
        "$minN",
        "$firstN",
        "$lastN",
    ];
    is_list.contains(&name)
}

fn all(c: &super::Documents, stages: &[Document]) -> slate_core::Result<()> {
    c.aggregate(stages.to_vec()).run()?.try_for_each(|row| row.map(drop))
}

pub(super) fn calls(n: usize) -> Vec<Call> {
    let mut calls = Vec::new();
    for (name, expression) in expressions(n) {
        let stage = doc! { "$project": { "x": expression.clone() } };
        calls.push(Call::new(format!("expression {name}"), move |c| {
            // Many operators refuse documents without the parts.
            all(&c.large, &[doc! { "$match": { "_id": { "$lt": 2 } } }, stage.clone()])
        }));
    }
    let of_rows = |name: String, stages: Vec<Document>| Call::new(name, move |c| all(&c.rows, &stages));
    for (name, accumulator) in accumulators(n) {
        calls.push(of_rows(
            format!("$group {name}"),
            vec![doc! { "$group": { "_id": null, "x": accumulator.clone() } }],
        ));
        calls.push(of_rows(
            format!("$group by many, {name}"),
            vec![doc! { "$group": { "_id": "$v", "x": accumulator.clone() } }],
        ));
        calls.push(of_rows(
            format!("$bucketAuto {name}"),
            vec![doc! { "$bucketAuto": { "groupBy": "$v", "buckets": 3, "output": { "x": accumulator } } }],
        ));
    }
    let quarter = n as i32 / 4;
    for (name, function) in accumulators(n).into_iter().chain(window_functions()) {
        let windows = [
            ("a short window", Some(doc! { "documents": [-5, 5] })),
            ("a window from the first row", Some(doc! { "documents": ["unbounded", "current"] })),
            ("a window to the last row", Some(doc! { "documents": ["current", "unbounded"] })),
            ("a long window", Some(doc! { "documents": [-quarter, quarter] })),
            ("a long range", Some(doc! { "range": [-quarter, quarter] })),
            ("all rows", None),
        ];
        for (window_name, window) in windows {
            let is_without = window_functions().iter().any(|(other, _)| *other == name);
            let takes_window =
                !is_without || ["$covariancePop", "$minMaxScaler", "$integral", "$derivative"].contains(&name);
            let requires = ["$integral", "$derivative"].contains(&name);
            if (window.is_some() && !takes_window)
                || (window.is_none() && requires)
                || name.starts_with("$mergeObjects")
                || (is_large(name) && window_name != "a short window")
            {
                continue;
            }
            for sort in ["v", "t"] {
                if sort == "t"
                    && (window_name == "a long range" || ["$linearFill", "$integral", "$derivative"].contains(&name))
                {
                    continue;
                }
                let mut function = function.clone();
                if let Some(window) = &window {
                    function.insert("window", window.clone());
                }
                let stage = doc! { "$setWindowFields": { "sortBy": { sort: 1 }, "output": { "x": function } } };
                calls.push(of_rows(
                    format!("$setWindowFields {name} of {window_name} by {sort}"),
                    vec![stage, doc! { "$project": { "x": { "$type": "$x" } } }],
                ));
            }
        }
    }
    calls
}
