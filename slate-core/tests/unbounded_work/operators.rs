//! Every operator that the tables of the language have, not a list of our making: each is called with operands of each kind (numbers, text,
//! binary, fields, documents), in every notation of an operand that some operator has. The notations that it accepts are found with small
//! documents, and then executed on large ones.

use std::time::{Duration, Instant};

use bson::{Binary, Bson, Document, RawDocumentBuf, doc, spec::BinarySubtype};
use slate_core::{Collection, Database, ErrorKind, OperatorKind, Result};

use super::{
    LATE,
    common::{
        self,
        operands::{notations, stages},
    },
    drawn::Random,
    waited,
};

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
                // `$linearFill` needs different values of `i` in a partition.
                let stages = |function: Document| {
                    let sorted = doc! { "partitionBy": "$_id", "sortBy": { "i": 1 }, "output": { "x": function } };
                    vec![
                        doc! { "$unwind": { "path": "$d", "includeArrayIndex": "i" } },
                        doc! { "$setWindowFields": sorted },
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
