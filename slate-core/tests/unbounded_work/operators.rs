//! Every operator that the tables of the language have, not a list of our making: each is called with operands of each kind (numbers, text,
//! binary, fields, documents), in every notation of an operand that some operator has. The notations that it accepts are found with small
//! documents, and then executed on large ones.

use std::time::{Duration, Instant};

use bson::{Binary, Bson, DateTime, Document, RawDocumentBuf, bson, doc, spec::BinarySubtype};
use slate_core::{Collection, Database, ErrorKind, OperatorKind, Result};

use super::{LATE, common, drawn::Random, waited};

/// The fields of the documents: an array of numbers, a text, bytes, a document of many fields, an array of documents.
const PARTS: [&str; 5] = ["a", "s", "b", "o", "d"];

/// A document in which each part has about this size in bytes.
fn document(id: i32, bytes: [usize; 5]) -> RawDocumentBuf {
    let [numbers, text, binary, fields, documents] = bytes;
    let a: Vec<i32> = (0..(numbers / 12) as i32).collect();
    let o: Document = (0..fields / 14).map(|at| (format!("f{at}"), Bson::Int32(at as i32))).collect();
    let d: Vec<Document> = (0..(documents / 32) as i32).map(|at| doc! { "x": at, "y": "t1" }).collect();
    let b = Binary { subtype: BinarySubtype::Generic, bytes: vec![7; binary] };
    common::raw(&doc! { "_id": id, "v": id, "a": a, "s": "ab ".repeat(text / 3), "b": b, "o": o, "d": d })
}

/// A collection with a document for each part, which is large there and small elsewhere.
pub(super) struct Parts {
    collection: Collection<RawDocumentBuf>,
    documents: Vec<RawDocumentBuf>,
}

impl Parts {
    pub(super) fn new(db: &Database, name: &str, large: usize, small: usize) -> Self {
        let collection = db.collection::<RawDocumentBuf>(name);
        let bytes = |part| std::array::from_fn(|other| if other == part { large } else { small });
        let documents: Vec<RawDocumentBuf> = (0..PARTS.len()).map(|part| document(part as i32, bytes(part))).collect();
        let parts = Self { collection, documents };
        parts.reset();
        parts
    }

    /// Undoes what a call has changed.
    fn reset(&self) {
        self.collection.delete_many(doc! {}).run().unwrap();
        self.documents.iter().for_each(|document| drop(self.collection.insert_one(document).unwrap()));
    }
}

/// A call of an operator with the operand of some number.
pub(super) struct Call {
    kind: OperatorKind,
    name: &'static str,
    part: usize,
    other: usize,
    notation: usize,
    operands: usize,
}

/// Every operator.
pub(super) fn operators() -> Vec<(OperatorKind, &'static str)> {
    OperatorKind::ALL.into_iter().flat_map(|kind| kind.names().into_iter().map(move |name| (kind, name))).collect()
}

/// Operators that no notation calls, and why.
const NOT_CALLED: [(&str, &str); 12] = [
    ("$out", "writes like `$merge`"),
    ("$comment", "does nothing"),
    ("$options", "is a part of `$regex`"),
    ("$each", "is a part of `$push`"),
    ("$position", "is a part of `$push`"),
    ("$slice", "is a part of `$push` as a modifier"),
    ("$sort", "is a part of `$push` as a modifier"),
    ("$meta", "has no text search"),
    ("$collStats", "is only first in a pipeline"),
    ("$indexStats", "is only first in a pipeline"),
    ("$documents", "is only first in a pipeline of a database"),
    ("$changeStream", "is only first in a pipeline"),
];

/// The operands with which something may be called: `v` and `w` are values, such as paths to large parts.
fn notations(v: &Bson, w: &Bson, operands: usize) -> Vec<Bson> {
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
fn stages(name: &str, v: &str, w: &str, operands: usize) -> Vec<Document> {
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

impl Call {
    /// Returns how many calls an operator has with the same parts.
    fn notations(kind: OperatorKind) -> usize {
        if kind == OperatorKind::Stage { 1 } else { notations(&Bson::Null, &Bson::Null, 1).len() }
    }

    /// Executes the call on the documents.
    fn run(&self, c: &Collection<RawDocumentBuf>) -> Result<()> {
        let (v, w) = (PARTS[self.part], PARTS[self.other]);
        let path = |part: &str| Bson::from(format!("${part}"));
        let operand = || notations(&path(v), &path(w), self.operands).swap_remove(self.notation);
        let all = |stages: Vec<Document>| c.aggregate(stages).run()?.try_for_each(|row| row.map(drop));
        let name = self.name;
        match self.kind {
            OperatorKind::Expression => all(vec![doc! { "$project": { "x": { name: operand() } } }]),
            OperatorKind::Accumulator => all(vec![
                doc! { "$unwind": { "path": "$d", "preserveNullAndEmptyArrays": true } },
                doc! { "$group": { "_id": null, "x": { name: operand() } } },
            ]),
            OperatorKind::WindowFunction => {
                let window = doc! { "documents": [-50, 50] };
                let of_window = doc! { name: operand(), "window": window };
                let without = doc! { name: operand() };
                let stages = |function: Document| {
                    vec![
                        doc! { "$unwind": { "path": "$d", "includeArrayIndex": "i" } },
                        doc! { "$setWindowFields": { "sortBy": { "i": 1 }, "output": { "x": function } } },
                    ]
                };
                all(stages(of_window)).or_else(|error| match error.kind() {
                    ErrorKind::Interrupted => Err(error),
                    _ => all(stages(without)),
                })
            }
            OperatorKind::Filter => {
                let operand = operand();
                // Some are conditions of a field, some stand alone.
                let filters = [doc! { v: { name: operand.clone() } }, doc! { name: operand }];
                let found = |filter: &Document| c.find(filter.clone()).run()?.try_for_each(|row| row.map(drop));
                found(&filters[0]).or_else(|error| match error.kind() {
                    ErrorKind::Interrupted => Err(error),
                    _ => found(&filters[1]),
                })
            }
            OperatorKind::Update => {
                // Some change numbers only: those of the array.
                let update = |field: &str| c.update_many(doc! {}, doc! { name: { field: operand() } }).run().map(drop);
                update(v).or_else(|error| match error.kind() {
                    ErrorKind::Interrupted => Err(error),
                    _ => update("a.$[]"),
                })
            }
            OperatorKind::Stage => match &*stages(name, v, w, self.operands) {
                [] => c.aggregate([doc! { name: operand() }]).run().map(drop),
                stages => all(stages.to_vec()),
            },
            other => panic!("no call for {other:?}"),
        }
    }

    /// Whether the call is right, so that large operands make it work.
    fn is_accepted(&self, small: &Parts) -> bool {
        let result = self.run(&small.collection);
        if self.kind == OperatorKind::Update && result.is_ok() {
            small.reset();
        }
        result.is_ok()
    }

    fn shown(&self) -> String {
        let Self { kind, name, part, other, notation, operands } = self;
        let [v, w] = [part, other].map(|part| Bson::from(format!("${}", PARTS[*part])));
        let operand = notations(&v, &w, *operands).swap_remove(*notation).to_string();
        let shown: String = operand.chars().take(80).collect();
        format!("{kind:?} {name} of {v} and {w}, {operands} operands: {shown}")
    }
}

/// Draws calls that are accepted, at most `most` for each operator and part, or one for each operator. Fails if an operator accepts none.
pub(super) fn accepted(small: &Parts, random: &mut Random, most: usize, operands: usize) -> Vec<Call> {
    let (mut accepted, mut refused) = (Vec::new(), Vec::new());
    for (kind, name) in operators() {
        let before = accepted.len();
        let first = random.below(PARTS.len());
        // With another part as the second value, and, if nothing is accepted then, with the same: some take two arrays.
        for step in 0..2 * PARTS.len() {
            let is_enough = accepted.len() > before && (most == 1 || step >= PARTS.len());
            if is_enough {
                break;
            }
            let part = (first + step) % PARTS.len();
            let notations = Call::notations(kind);
            let begin = random.below(notations);
            let mut found = 0;
            for notation in (0..notations).map(|at| (begin + at) % notations) {
                let other = if step < PARTS.len() { random.below(PARTS.len()) } else { part };
                let call = Call { kind, name, part, other, notation, operands: 3 };
                if found < most && call.is_accepted(small) {
                    accepted.push(Call { operands, ..call });
                    found += 1;
                }
            }
        }
        if accepted.len() == before && !NOT_CALLED.iter().any(|(other, _)| *other == name) {
            refused.push(format!("{kind:?} {name}"));
        }
    }
    assert!(refused.is_empty(), "operators without a call that is accepted: {refused:?}");
    accepted
}

/// Executes calls on large documents. Returns those that worked for more than `limit` steps between two checks.
#[cfg(debug_assertions)]
pub(super) fn unchecked(calls: &[Call], large: &Parts, within: Duration, limit: usize) -> Vec<String> {
    let c = large.collection.with_deadline(within);
    let mut broken = Vec::new();
    for call in calls {
        let (result, most) = slate_query::work::testing::most_unchecked(|| call.run(&c));
        if most > limit {
            let result = result.map_err(|error| error.kind());
            broken.push(format!("{most} steps without a check: {}: {result:?}", call.shown()));
        }
        if matches!(call.kind, OperatorKind::Update) || call.name == "$merge" {
            large.reset();
        }
    }
    broken
}

/// Executes calls on large documents. Returns how many were interrupted, and those that returned late.
pub(super) fn late(calls: &[Call], large: &Parts, within: Duration) -> (usize, Vec<String>) {
    let c = large.collection.with_deadline(within);
    let (mut interrupted, mut late) = (0, Vec::new());
    for call in calls {
        let (start, before) = (Instant::now(), waited());
        let result = call.run(&c);
        let time = start.elapsed().saturating_sub(waited() - before);
        interrupted += usize::from(result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Interrupted));
        if time > within + LATE {
            let result = result.map_err(|error| error.kind());
            late.push(format!("{time:?}: {}: {result:?}", call.shown()));
        }
        if matches!(call.kind, OperatorKind::Update) || call.name == "$merge" {
            large.reset();
        }
    }
    (interrupted, late)
}
