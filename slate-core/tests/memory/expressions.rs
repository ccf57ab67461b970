//! Memory of calls whose expressions compute large values, compared with the `memory_limit` of the call.
//!
//! Expressions are drawn at random, typed, so that most of them compute something; their sizes reach from far below the limit to far
//! beyond it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use allocation_counter::measure;
use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{Collection, Database, ErrorKind};
use slate_store_conformance::Random;

/// The length of the longest value in a document.
const LARGE: usize = 60_000;

/// What a call may take beside its limit, in bytes: rows, which are copied from stage to stage, buffers, and the lists that are too short
/// to be counted.
const BESIDE: usize = 3 << 20;

fn documents() -> Collection<RawDocumentBuf> {
    let collection = Database::open("memory:").unwrap().collection("c");
    for id in 0..2 {
        let numbers: Vec<Bson> = (0..4_000 + id).map(|number| Bson::Int32(number * 7 % 10_000)).collect();
        let objects: Vec<Bson> =
            (0..800).map(|number| Bson::Document(doc! { "k": format!("f{number}"), "v": number })).collect();
        let object: Document = (0..1_600).map(|number| (format!("field{number}"), Bson::Int32(number))).collect();
        let text = "a b,c ".repeat(LARGE / 6);
        let document =
            doc! { "_id": id, "text": text, "numbers": numbers, "objects": objects, "object": object, "n": 3 };
        collection.insert_one(&RawDocumentBuf::try_from(&document).unwrap()).unwrap();
    }
    collection
}

/// Draws expressions.
struct Draw {
    random: Random,
    /// The nesting that is left.
    depth: usize,
}

impl Draw {
    fn of(&mut self, choices: &[fn(&mut Self) -> Bson], leaf: Bson) -> Bson {
        if self.depth == 0 {
            return leaf;
        }
        self.depth -= 1;
        let drawn = choices[self.random.index(choices.len())](self);
        self.depth += 1;
        drawn
    }

    fn copies(&mut self, mut draw: impl FnMut(&mut Self) -> Bson) -> Vec<Bson> {
        let one = draw(self);
        vec![one; 1 + self.random.index(6)]
    }

    fn text(&mut self) -> Bson {
        self.of(
            &[
                |d| bson(doc! { "$concat": d.copies(Self::text) }),
                |d| bson(doc! { "$toUpper": d.text() }),
                |d| bson(doc! { "$substrCP": [d.text(), d.random.index(10) as i32, LARGE as i32] }),
                |d| bson(doc! { "$substrBytes": [d.text(), 0, -1] }),
                |d| bson(doc! { "$replaceAll": { "input": d.text(), "find": "b", "replacement": "b".repeat(d.random.index(12)) } }),
                |d| bson(doc! { "$trim": { "input": d.text(), "chars": "a" } }),
                |d| bson(doc! { "$reduce": { "input": { "$range": [0, d.random.index(9) as i32] }, "initialValue": d.text(),
                    "in": { "$concat": ["$$value", d.text()] } } }),
                |d| bson(doc! { "$let": { "vars": { "a": d.text(), "b": d.text(), "c": d.text() }, "in": { "$concat": ["$$a", "$$b"] } } }),
                |d| bson(doc! { "$dateToString": { "date": bson::DateTime::from_millis(0), "format": d.text() } }),
                |d| bson(doc! { "$toString": d.text() }),
                |d| bson(doc! { "$convert": { "input": { "$convert": { "input": d.text(), "to": "binData", "format": "utf8" } },
                    "to": "string", "format": "hex" } }),
                |d| bson(doc! { "$cond": [{ "$gt": [{ "$strLenCP": d.text() }, 5] }, d.text(), ""] }),
            ],
            "$text".into(),
        )
    }

    fn array(&mut self) -> Bson {
        let range = bson(doc! { "$range": [0, 1 << self.random.index(18) as i32] });
        let leaf = [range, "$numbers".into(), "$objects".into()][self.random.index(3)].clone();
        self.of(
            &[
                |d| bson(doc! { "$concatArrays": d.copies(Self::array) }),
                |d| bson(doc! { "$map": { "input": { "$range": [0, d.random.index(60) as i32] }, "in": d.text() } }),
                |d| bson(doc! { "$map": { "input": d.array(), "in": ["$$this", "$n", { "a": "$$this" }] } }),
                |d| bson(doc! { "$map": { "input": { "$range": [0, 9] }, "in": d.array() } }),
                |d| bson(doc! { "$filter": { "input": d.array(), "cond": { "$ne": ["$$this", 7] } } }),
                |d| bson(doc! { "$reduce": { "input": { "$range": [0, d.random.index(9) as i32] }, "initialValue": [],
                    "in": { "$concatArrays": ["$$value", d.array()] } } }),
                |d| bson(doc! { "$zip": { "inputs": d.copies(Self::array), "useLongestLength": true } }),
                |d| bson(doc! { "$split": [d.text(), ","] }),
                |d| bson(doc! { "$regexFindAll": { "input": d.text(), "regex": "([ab])( )?" } }),
                |d| bson(doc! { "$setUnion": d.copies(Self::array) }),
                |d| bson(doc! { "$setIntersection": d.copies(Self::array) }),
                |d| bson(doc! { "$setDifference": [d.array(), [1, 2]] }),
                |d| bson(doc! { "$objectToArray": d.object() }),
                |d| bson(doc! { "$sortArray": { "input": d.array(), "sortBy": -1 } }),
                |d| bson(doc! { "$reverseArray": d.array() }),
                |d| bson(doc! { "$slice": [d.array(), 1, 1 << 20] }),
                |d| bson(doc! { "$maxN": { "input": d.array(), "n": 1 << 20 } }),
                |d| bson(doc! { "$firstN": { "input": d.array(), "n": 1 << 20 } }),
                |d| bson(doc! { "$ifNull": [d.copies(Self::array), []] }),
                |d| bson(doc! { "$ifNull": [d.array(), []] }),
                |_| "$objects.k".into(),
                |d| bson(doc! { "$percentile": { "input": d.array(), "p": vec![0.5; d.random.index(9) + 1], "method": "approximate" } }),
            ],
            leaf,
        )
    }

    fn object(&mut self) -> Bson {
        self.of(
            &[
                |d| bson(doc! { "$arrayToObject": { "$map": { "input": d.array(), "in": { "k": { "$toString": { "$bsonSize": { "a": "$$this" } } }, "v": "$$this" } } } }),
                |_| bson(doc! { "$arrayToObject": "$objects" }),
                |d| bson(doc! { "$mergeObjects": [d.object(), { "a": d.array(), "b": d.text() }] }),
                |d| bson(doc! { "$setField": { "field": "x", "input": d.object(), "value": d.array() } }),
                |d| bson(doc! { "a": d.text(), "b": d.array(), "c": d.array() }),
                |d| bson(doc! { "$getField": { "field": "x", "input": { "x": d.object() } } }),
            ],
            "$object".into(),
        )
    }

    fn any(&mut self) -> Bson {
        match self.random.index(4) {
            0 => self.text(),
            1 => self.object(),
            _ => self.array(),
        }
    }
}

fn bson(document: Document) -> Bson {
    Bson::Document(document)
}

/// Executes a call with an expression and a memory limit.
type Execute = fn(&Collection<RawDocumentBuf>, Bson, usize) -> slate_core::Result<usize>;

/// Calls with one large expression, or with several of them. Each returns the number of its rows.
const CALLS: &[(&str, Execute)] = &[
    ("$project", |c, e, limit| rows(c, [doc! { "$project": { "x": e } }], limit)),
    ("$project of many", |c, e, limit| {
        let fields: Document = (0..40).map(|number| (format!("x{number}"), e.clone())).collect();
        rows(c, [doc! { "$project": fields }], limit)
    }),
    ("$addFields below an array", |c, e, limit| {
        rows(
            c,
            [
                doc! { "$project": { "objects": { "$slice": ["$objects", 100] }, "text": 1, "numbers": 1 } },
                doc! { "$set": { "objects.x": e } },
            ],
            limit,
        )
    }),
    ("$replaceRoot", |c, e, limit| rows(c, [doc! { "$replaceRoot": { "newRoot": { "x": e } } }], limit)),
    ("$match", |c, e, limit| {
        rows(c, [doc! { "$match": { "$expr": { "$ne": [{ "$bsonSize": { "x": e } }, 1] } } }], limit)
    }),
    ("$push", |c, e, limit| rows(c, [doc! { "$group": { "_id": null, "x": { "$push": e } } }], limit)),
    ("$addToSet", |c, e, limit| rows(c, [doc! { "$group": { "_id": null, "x": { "$addToSet": e } } }], limit)),
    ("$push of many", |c, e, limit| {
        let mut fields: Document =
            (0..20).map(|number| (format!("x{number}"), bson(doc! { "$push": e.clone() }))).collect();
        fields.insert("_id", Bson::Null);
        rows(c, [doc! { "$group": fields }], limit)
    }),
    ("$group by it", |c, e, limit| rows(c, [doc! { "$group": { "_id": e, "x": { "$sum": 1 } } }], limit)),
    ("$maxN", |c, e, limit| {
        rows(c, [doc! { "$group": { "_id": null, "x": { "$maxN": { "input": e, "n": 3 } } } }], limit)
    }),
    ("$setWindowFields", |c, e, limit| {
        rows(c, [doc! { "$setWindowFields": { "sortBy": { "_id": 1 }, "output": { "x": { "$push": e } } } }], limit)
    }),
    ("constants", |c, _, limit| {
        let fields: Document =
            (0..200).map(|number| (format!("x{number}"), bson(doc! { "$range": [0, 20_000 + number] }))).collect();
        rows(c, [doc! { "$project": fields }], limit)
    }),
    ("find", |c, e, limit| {
        let found = c.find(doc! {}).projection(doc! { "x": e }).memory_limit(limit);
        read(found.cursor()?)
    }),
    ("update", |c, e, limit| {
        c.update_many(doc! {}, vec![doc! { "$set": { "x": e } }, doc! { "$unset": "x" }])
            .memory_limit(limit)
            .run()
            .map(|_| 1)
    }),
];

fn rows(
    c: &Collection<RawDocumentBuf>,
    stages: impl IntoIterator<Item = Document>,
    limit: usize,
) -> slate_core::Result<usize> {
    read(c.aggregate(stages.into_iter().collect::<Vec<_>>()).memory_limit(limit).cursor()?)
}

fn read(mut cursor: slate_core::Cursor) -> slate_core::Result<usize> {
    let mut rows = 0;
    while cursor.advance()? {
        rows += 1;
    }
    Ok(rows)
}

/// Executes `calls` drawn calls. Returns how many were refused.
fn check(seed: u64, calls: usize) -> usize {
    let collection = documents();
    let mut refused = 0;
    for call in 0..calls {
        let mut draw = Draw { random: Random::new(seed.wrapping_mul(1_000_003) + call as u64), depth: 1 + call % 3 };
        let (name, execute) = CALLS[draw.random.index(CALLS.len())];
        let (expression, limit) = (draw.any(), 1_usize << (20 + draw.random.index(2)));
        let mut result = Ok(0);
        let taken = measure(|| result = execute(&collection, expression.clone(), limit));
        let shown: String = expression.to_string().chars().take(2_000).collect();
        let took = taken.bytes_max as usize;
        assert!(
            took <= limit + BESIDE,
            "call {call} of seed {seed}, {name} with a limit of {limit}, took {took}: {result:?} of {shown}"
        );
        match result {
            Err(error) if error.code() == 146 => {
                assert!(
                    error.kind() == ErrorKind::TooLarge
                        && error.message().contains(&format!("{limit} bytes of memory_limit")),
                    "{error}"
                );
                assert!(took > limit / 8, "{name}: {error}, although it took {took}: {shown}");
                refused += 1;
            }
            Err(error) => panic!("{name}: {error}: {shown}"),
            Ok(_) => {}
        }
    }
    refused
}

#[test]
fn values_of_expressions_are_charged_to_the_memory_limit_of_their_call() {
    let seed = std::env::var("SLATE_SEED").map_or(1, |seed| seed.parse().unwrap());
    let calls = std::env::var("SLATE_CASES").map_or(4, |cases| cases.parse().unwrap());
    let refused = check(seed, calls);
    assert!(refused < calls && (calls < 20 || refused > calls / 20), "{refused} of {calls} calls were refused");
}

#[test]
fn a_limit_of_the_database_is_one_for_expressions_and_the_error_says_how_to_raise_it() {
    let limited = Database::builder("memory:").memory_limit(1 << 20).open().unwrap();
    let collection = limited.collection::<Document>("c");
    collection.insert_one(&doc! { "_id": 1, "text": "x".repeat(20_000) }).unwrap();
    let copies = doc! { "$map": { "input": { "$range": [0, 60] }, "in": "$text" } };
    let constants: Document = (0..8).map(|place| (format!("f{place}"), bson(doc! { "$range": [0, 20_000] }))).collect();
    let message = "more than the 1048576 bytes of memory_limit allow; set a larger one (at 'copies')";
    for stage in [
        doc! { "$project": { "copies": copies.clone() } },
        doc! { "$group": { "_id": "$_id", "copies": { "$push": copies.clone() } } },
        doc! { "$project": { "constants": constants } },
    ] {
        let over = |limit| {
            let call = collection.aggregate([stage.clone()]);
            let call = if limit > 0 { call.memory_limit(limit) } else { call };
            call.run().and_then(|rows| rows.collect::<slate_core::Result<Vec<_>>>())
        };
        let refused = over(0).unwrap_err();
        assert_eq!((refused.kind(), refused.code()), (ErrorKind::TooLarge, 146), "{refused}");
        assert!(stage.to_string().contains("constants") || refused.to_string().contains(message), "{refused}");
        assert_eq!(over(16 << 20).unwrap().len(), 1, "a limit of the call replaces that of the database");
    }
    // In a transaction, which has another way to its database's limits.
    let refused = limited.transact(|tx| {
        tx.collection::<Document>("c").update_one(doc! {}, vec![doc! { "$set": { "copies": copies.clone() } }]).run()
    });
    assert_eq!(refused.unwrap_err().code(), 146);
}

#[test]
fn constants_of_a_joined_pipeline_are_given_back_with_each_document() {
    let collection = Database::open("memory:").unwrap().collection::<Document>("c");
    let documents: Vec<Document> = (0..2_000).map(|id| doc! { "_id": id, "part": "x".repeat(1_000) }).collect();
    collection.insert_many(&documents).run().unwrap();
    let inner = [doc! { "$limit": 1 }, doc! { "$match": { "$expr": { "$eq": ["$no", "$$outer.part"] } } }];
    let join =
        doc! { "$lookup": { "from": "c", "let": { "outer": "$$ROOT" }, "pipeline": inner.as_slice(), "as": "joined" } };
    let stages = [join, doc! { "$group": { "_id": null, "n": { "$sum": 1 } } }];
    let rows: Vec<Document> =
        collection.aggregate(stages).memory_limit(1 << 20).run().unwrap().collect::<slate_core::Result<_>>().unwrap();
    assert_eq!(rows, [doc! { "_id": null, "n": 2_000 }]);
}
