//! Operands for every operator, in every notation of an operand that some operator has.

use bson::{Bson, DateTime, Document, bson, doc};

/// The operands with which something may be called: `v` and `w` are values, such as paths to large parts.
pub fn notations(v: &Bson, w: &Bson, operands: usize) -> Vec<Bson> {
    let date = Bson::DateTime(DateTime::from_millis(1_700_000_000_000));
    let numbers: Vec<Bson> = (0..operands as i32).map(Bson::Int32).collect();
    let named: Document = (0..operands).map(|at| (format!("n{at}"), v.clone())).collect();
    vec![
        v.clone(),
        bson!([v]),
        bson!([v, w]),
        bson!([w, v]),
        bson!([v, 1]),
        bson!([1, v]),
        bson!([v, 1, 2]),
        bson!([v, 1, 1_000_000]),
        bson!([v, "b "]),
        bson!([v, "ab", 0, 1_000_000]),
        bson!([v, w, v]),
        bson!([[v]]),
        bson!([0, operands as i32]),
        bson!([1.5, 2]),
        bson!([7, 2]),
        1.into(),
        true.into(),
        "s".into(),
        bson!({}),
        date.clone(),
        Bson::Timestamp(bson::Timestamp { time: 1, increment: 2 }),
        "0123456789abcdef01234567".into(),
        "01234567-89ab-cdef-0123-456789abcdef".into(),
        bson!([numbers.clone(), v]),
        bson!([v, numbers.clone()]),
        Bson::Array(numbers.iter().map(|number| bson!({ "$add": [number, 1] })).collect()),
        Bson::Array(std::iter::repeat_n(v.clone(), 40).collect()),
        Bson::Document(named.clone()),
        bson!([named, v]),
        bson!({ "input": v }),
        bson!({ "input": v, "chars": w }),
        bson!({ "input": v, "chars": "ab " }),
        bson!({ "input": v, "regex": "(a|b)*c" }),
        bson!({ "input": v, "regex": "b( )?" }),
        bson!({ "input": v, "find": "ab", "replacement": "x" }),
        bson!({ "input": v, "find": " a", "replacement": w }),
        bson!({ "input": v, "to": "string" }),
        bson!({ "input": v, "to": { "type": "binData" }, "format": "utf8" }),
        bson!({ "input": v, "to": { "type": "string" }, "format": "hex" }),
        bson!({ "input": v, "to": "decimal", "onError": 0 }),
        bson!({ "input": v, "in": "$$this" }),
        bson!({ "input": v, "cond": { "$in": ["$$this", w] } }),
        bson!({ "input": v, "cond": { "$gt": ["$$this", 1] } }),
        bson!({ "input": v, "initialValue": [], "in": { "$concatArrays": ["$$value", ["$$this"]] } }),
        bson!({ "input": v, "n": operands as i32 }),
        bson!({ "input": v, "sortBy": 1 }),
        bson!({ "input": v, "sortBy": { "x": -1, "y": 1 } }),
        bson!({ "input": v, "p": [0.5, 0.9], "method": "approximate" }),
        bson!({ "input": v, "method": "approximate" }),
        bson!({ "inputs": [v, w], "useLongestLength": true }),
        bson!({ "field": "f9", "input": v }),
        bson!({ "field": "f9", "input": v, "value": w }),
        bson!({ "branches": [{ "case": { "$eq": [v, w] }, "then": 1 }], "default": v }),
        bson!({ "vars": { "x": v }, "in": "$$x" }),
        bson!({ "if": v, "then": w, "else": v }),
        bson!({ "date": date.clone() }),
        bson!({ "date": date.clone(), "unit": "day" }),
        bson!({ "date": date.clone(), "format": v }),
        bson!({ "startDate": date.clone(), "unit": "day", "amount": 1 }),
        bson!({ "startDate": date.clone(), "endDate": date, "unit": "day" }),
        bson!({ "dateString": v, "onError": 0 }),
        bson!({ "year": 2024, "month": 2 }),
        // Accumulators and window functions.
        bson!({ "n": operands as i32, "sortBy": { "a": 1 }, "output": v }),
        bson!({ "sortBy": { "a": 1 }, "output": v }),
        bson!({ "output": v, "by": 1, "default": 0 }),
        bson!({ "input": v, "alpha": 0.5 }),
        bson!({ "input": v, "unit": "day" }),
        bson!({ "input": "$d.x" }),
        bson!({ "input": "$d.x", "min": 0, "max": 9 }),
        bson!({ "$objectToArray": v }),
        // Conditions and updates.
        bson!({ "$gt": v }),
        Bson::Array(numbers.iter().map(|number| bson!({ "none": number })).collect()),
        bson!({ "properties": { "a": { "items": { "enum": numbers.clone() } } } }),
        bson!({ "$elemMatch": { "$nin": numbers.clone() } }),
        Bson::Array(numbers.iter().map(|number| bson!({ "$elemMatch": { "x": number } })).collect()),
        Bson::Array(numbers.clone()),
        bson!({ "$each": numbers.clone(), "$sort": -1, "$slice": -1_000_000 }),
        bson!({ "$in": numbers }),
        bson!({ "x": { "$gt": 1 } }),
        bson!({ "and": 7 }),
        "none.x".into(),
        "(ab |b a)*z".into(),
    ]
}

/// The arguments of each stage, in which `v` is a path to a part.
pub fn stages(name: &str, v: &str, w: &str, operands: usize) -> Vec<Document> {
    let path = |part: &str| format!("${part}");
    let wide: Document = (0..operands).map(|at| (format!("n{at}"), Bson::from(path(v)))).collect();
    let operand = match name {
        "$addFields" | "$set" => Bson::Document(wide),
        "$project" => bson!({ "x": path(v), "y": { "z": path(w) } }),
        "$unset" => bson!([format!("{v}.x"), w]),
        "$bucket" => bson!({ "groupBy": "$v", "boundaries": (0..operands as i32).collect::<Vec<_>>(), "default": -1 }),
        "$bucketAuto" => bson!({ "groupBy": path(v), "buckets": operands as i32 }),
        "$count" => "n".into(),
        "$densify" => bson!({ "field": "v", "range": { "step": 0.000_01, "bounds": "full" } }),
        "$facet" => bson!({ "x": [{ "$unwind": path(v) }], "y": [{ "$sortByCount": path(w) }] }),
        "$fill" => bson!({ "sortBy": { "v": 1 }, "output": { v: { "method": "locf" } } }),
        "$graphLookup" => {
            bson!({ "from": "large", "startWith": path(v), "connectFromField": v, "connectToField": w, "as": "g" })
        }
        "$group" => bson!({ "_id": path(v), "x": { "$push": path(w) } }),
        "$limit" | "$skip" => 3.into(),
        "$lookup" => bson!({ "from": "large", "localField": v, "foreignField": w, "as": "l" }),
        "$match" => bson!({ v: { "$nin": (0..operands as i32).collect::<Vec<_>>() } }),
        "$merge" => bson!({ "into": "merged" }),
        "$redact" => bson!({ "$cond": [{ "$eq": [path(v), path(w)] }, "$$PRUNE", "$$DESCEND"] }),
        "$replaceRoot" => bson!({ "newRoot": { "x": path(v), "y": path(w) } }),
        "$replaceWith" => bson!({ "$mergeObjects": ["$o", { "x": path(v) }] }),
        "$sample" => bson!({ "size": 3 }),
        "$setWindowFields" => bson!({ "sortBy": { v: 1 }, "output": {
            "x": { "$push": path(w), "window": { "documents": ["unbounded", "current"] } },
        } }),
        "$sort" => bson!({ v: 1, w: -1 }),
        "$sortByCount" => path(v).into(),
        "$unionWith" => bson!({ "coll": "large", "pipeline": [{ "$unwind": path(v) }] }),
        "$unwind" => path(v).into(),
        _ => return Vec::new(),
    };
    let mut stages = vec![doc! { name: operand }];
    // What the stage has made is read, too.
    if name != "$merge" {
        stages.push(doc! { "$group": { "_id": null, "n": { "$sum": 1 } } });
    }
    stages
}
