//! Calls whose work is inside one document end at their deadline.
//!
//! Filters, updates, expressions and pipelines of random operators, sizes and nestings are executed on a few documents. In a build with
//! debug assertions the tests count the real work between two checks of the deadline: elements read, values compared, bytes written.
//! The long run measures the time instead:
//!
//! ```sh
//! SLATE_WORK_SECONDS=600 cargo test --release -p slate-core --test unbounded_work -- --ignored --nocapture
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a test fails by panicking"
)]

mod common;

use std::time::{Duration, Instant};

use bson::{Bson, Document, RawDocumentBuf, bson, doc};
use common::Store;
use slate_core::{Collection, Index, Result};

/// A generator of numbers that is the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most.max(1) as u64) as usize
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Draws calls whose operands and documents have about `size` parts.
struct Draw {
    random: Random,
    size: usize,
}

type Call = Box<dyn Fn(&Collection<RawDocumentBuf>) -> Result<()>>;

impl Draw {
    /// A number of operands: few or many.
    fn many(&mut self) -> usize {
        let size = self.size;
        if self.random.below(3) == 0 { 2 + self.random.below(4) } else { size / 2 + self.random.below(size / 2) }
    }

    fn number(&mut self) -> Bson {
        let size = self.size;
        // Most are not in the documents.
        Bson::Int32(self.random.below(4 * size) as i32 - 2 * size as i32)
    }

    fn scalar(&mut self) -> Bson {
        match self.random.below(6) {
            0 => Bson::String(format!("t{}", self.random.below(self.size))),
            1 => Bson::Document(doc! { "x": self.number(), "y": self.number() }),
            2 => Bson::Array(vec![self.number(), self.number()]),
            _ => self.number(),
        }
    }

    fn list(&mut self, mut each: impl FnMut(&mut Self) -> Bson) -> Bson {
        let length = self.many();
        Bson::Array((0..length).map(|_| each(self)).collect())
    }

    fn field(&mut self) -> &'static str {
        self.random.of(&["a", "a", "s", "o", "d", "d.x", "o.f1", "n", "none"])
    }

    fn condition(&mut self) -> Bson {
        Bson::Document(match self.random.below(12) {
            0 => doc! { "$ne": self.scalar() },
            1 => doc! { "$gt": self.scalar() },
            2 => doc! { "$in": self.list(Self::scalar) },
            3 => doc! { "$nin": self.list(Self::scalar) },
            4 => doc! { "$all": self.list(Self::scalar) },
            5 => doc! { "$elemMatch": { "$nin": self.list(Self::scalar) } },
            6 => doc! { "$elemMatch": { "$or": self.list(|draw| Bson::Document(doc! { "x": draw.scalar() })) } },
            7 => doc! { "$not": { "$elemMatch": { "$gt": self.number(), "$lt": self.number() } } },
            8 => doc! { "$regex": self.random.of(&["t1", "^ab", "b+ a", "(a|b) *b", "z$"]) },
            9 => doc! { "$size": self.random.below(9) as i32 },
            _ => return self.scalar(),
        })
    }

    /// Draws a filter that nests lists to this depth.
    fn filter(&mut self, levels: usize) -> Document {
        match self.random.below(if levels > 0 { 7 } else { 3 }) {
            0 | 1 => {
                let field = self.field();
                doc! { field: self.condition() }
            }
            2 if self.random.below(2) == 0 => doc! { "$expr": self.expression(2) },
            2 => {
                let values = self.list(Self::scalar);
                let mut distinct: Vec<Bson> = Vec::new();
                for value in values.as_array().unwrap().iter().take(200) {
                    if !distinct.contains(value) {
                        distinct.push(value.clone());
                    }
                }
                doc! { "$jsonSchema": { "properties": { "a": { "items": { "enum": distinct } } } } }
            }
            3 => (0..self.many()).map(|at| (format!("g{at}"), self.scalar())).collect(),
            list => {
                let operator = ["$and", "$or", "$nor"][list - 4];
                let simple = self.random.below(2) == 0;
                let outer = self.size;
                let filters = self.list(|draw| {
                    if simple {
                        let field = if operator == "$and" { "a" } else { "v" };
                        return Bson::Document(doc! { field: { "$ne": draw.number() } });
                    }
                    // Lists in lists are shorter, so that the filter does not explode.
                    draw.size = 20;
                    let filter = draw.filter(levels - 1);
                    draw.size = outer;
                    Bson::Document(filter)
                });
                doc! { operator: filters }
            }
        }
    }

    /// Draws an expression that is an array.
    fn array(&mut self, levels: usize) -> Bson {
        let size = self.size as i32;
        if levels == 0 {
            return self.random.of(&["$a", "$a", "$d", "$none"]).into();
        }
        let inner = self.array(levels - 1);
        match self.random.below(15) {
            0 => bson!({ "$range": [0, size] }),
            1 => bson!({ "$map": { "input": inner, "in": self.expression(levels - 1) } }),
            2 => bson!({ "$filter": { "input": inner, "cond": { "$in": ["$$this", self.array(levels - 1)] } } }),
            3 => bson!({ "$sortArray": { "input": inner, "sortBy": -1 } }),
            4 => bson!({ "$concatArrays": [inner, self.array(levels - 1)] }),
            5 => bson!({ "$setUnion": [inner, self.array(levels - 1)] }),
            6 => bson!({ "$setDifference": [inner, self.array(levels - 1)] }),
            7 => bson!({ "$reverseArray": inner }),
            8 => bson!({ "$maxN": { "n": size / 2, "input": inner } }),
            9 => bson!({ "$objectToArray": "$o" }),
            10 => bson!({ "$zip": { "inputs": [inner, self.array(levels - 1)], "useLongestLength": true } }),
            11 => {
                bson!({ "$regexFindAll": { "input": "$s", "regex": self.random.of(&["a", "a(b)?", "(?=b)", "x*"]) } })
            }
            12 => bson!({ "$split": ["$s", self.random.of(&[" ", "ab", "z"])] }),
            13 => bson!({ "$slice": [inner, size / 3, size] }),
            _ => bson!({ "$lastN": { "n": size, "input": inner } }),
        }
    }

    fn expression(&mut self, levels: usize) -> Bson {
        let size = self.size as i32;
        if levels == 0 {
            return self.random.of(&["$a", "$s", "$o", "$none", "$$ROOT"]).into();
        }
        let array = self.array(levels - 1);
        match self.random.below(15) {
            0 => bson!({ "$size": { "$ifNull": [array, []] } }),
            1 => bson!({ "$reduce": { "input": array, "initialValue": 0, "in": { "$add": [1, { "$size": "$a" }] } } }),
            2 => bson!({ "$setIsSubset": ["$a", { "$ifNull": [array, []] }] }),
            3 => bson!({ "$indexOfArray": [array, self.number()] }),
            4 => bson!({ "$mergeObjects": ["$o", { "$arrayToObject": { "$objectToArray": "$o" } }] }),
            5 => bson!({ "$substrCP": ["$s", size, 5] }),
            6 => bson!({ "$indexOfCP": ["$s", "zz"] }),
            7 => bson!({ "$sum": array }),
            8 => bson!({ "$switch": {
                "branches": self.list(|draw| bson!({ "case": { "$eq": ["$a", draw.number()] }, "then": 1 })), "default": 0,
            } }),
            9 => bson!({ "$or": self.list(|draw| bson!({ "$eq": ["$v", draw.number()] })) }),
            10 => bson!({ "$let": {
                "vars": (0..self.many()).map(|at| (format!("v{at}"), Bson::from("$v"))).collect::<Document>(), "in": "$$v0",
            } }),
            11 => bson!({ "$getField": { "field": format!("f{}", size / 2), "input": "$o" } }),
            12 => bson!({ "$replaceAll": { "input": "$s", "find": "a", "replacement": "b" } }),
            13 => bson!({ "$eq": [array, self.array(levels - 1)] }),
            _ => array,
        }
    }

    fn update(&mut self) -> (Document, Vec<Document>) {
        let numbered = |count: usize, value: &dyn Fn(usize) -> Bson| -> Document {
            // Out of order, as names often are.
            (0..count).map(|at| (format!("o.f{}", at * 7 % count.max(1)), value(at))).collect()
        };
        let count = self.size;
        match self.random.below(9) {
            0 => (doc! { "$set": numbered(count, &|at| Bson::Int32(at as i32)) }, Vec::new()),
            1 => {
                let renames: Document = (0..count / 2).map(|at| (format!("f{at}"), format!("g{at}").into())).collect();
                (doc! { "$rename": renames }, Vec::new())
            }
            2 => (doc! { "$push": { "a": { "$each": self.list(Self::scalar), "$sort": 1 } } }, Vec::new()),
            3 => (doc! { "$addToSet": { "a": { "$each": self.list(Self::scalar) } } }, Vec::new()),
            4 => (doc! { "$pullAll": { "a": self.list(Self::scalar) } }, Vec::new()),
            5 => (doc! { "$pull": { "a": { "$in": self.list(Self::scalar) } } }, Vec::new()),
            6 => {
                let nor = self.list(|draw| Bson::Document(doc! { "e": draw.number() }));
                (doc! { "$set": { "a.$[e]": 1 } }, vec![doc! { "$nor": nor }])
            }
            7 => (doc! { "$unset": numbered(count, &|_| Bson::Int32(1)) }, Vec::new()),
            _ => (doc! { "$set": { "a.$[e].z": 1 } }, vec![doc! { "e.x": { "$in": self.list(Self::scalar) } }]),
        }
    }

    fn stages(&mut self) -> Vec<Document> {
        match self.random.below(8) {
            0 => vec![doc! { "$match": self.filter(2) }],
            1 => {
                let fields: Document = (0..self.size).map(|at| (format!("p{at}"), Bson::from("$v"))).collect();
                vec![doc! { "$addFields": fields }]
            }
            2 => vec![
                doc! { "$unwind": "$a" },
                doc! { "$setWindowFields": { "sortBy": { "_id": 1 }, "output": {
                    "t": { "$topN": { "n": 5, "sortBy": { "a": 1 }, "output": "$a" }, "window": { "documents": [-40, 40] } },
                } } },
            ],
            3 => vec![
                doc! { "$unwind": "$a" },
                doc! { "$group": { "_id": null, "t": { "$topN": { "n": 1000, "sortBy": { "a": -1 }, "output": "$a" } },
                "m": { "$minN": { "n": 1000, "input": "$a" } }, "f": { "$firstN": { "n": 1000, "input": "$a" } } } },
            ],
            4 => vec![doc! { "$unwind": "$a" }, doc! { "$sort": { "a": 1 } }, doc! { "$project": { "a": 1 } }],
            5 => vec![doc! { "$project": { "r": { "$reduce": {
                "input": { "$range": [0, 30] }, "initialValue": "$a", "in": { "$concatArrays": ["$$value", "$$value"] },
            } } } }],
            _ => vec![doc! { "$project": { "e": self.expression(3) } }],
        }
    }

    fn call(&mut self) -> (String, Call) {
        let described = |what: &str, document: &Document| {
            let text = document.to_string();
            format!("{what} {}", text.chars().take(300).collect::<String>())
        };
        let collated = self.random.below(6) == 0;
        match self.random.below(9) {
            0 | 1 => {
                let filter = self.filter(2);
                let name = described(if collated { "find, collated," } else { "find" }, &filter);
                (
                    name,
                    Box::new(move |c| {
                        let find = c.find(filter.clone());
                        let find = if collated { find.collation(doc! { "locale": "en", "strength": 2 }) } else { find };
                        find.run()?.try_for_each(|row| row.map(drop))
                    }),
                )
            }
            2 => {
                let filter = self.filter(1);
                (described("count", &filter), Box::new(move |c| c.count_documents(filter.clone()).run().map(drop)))
            }
            3 => {
                let equalities: Document = (0..self.size).map(|at| (format!("u{at}.x"), self.number())).collect();
                (
                    described("upsert", &equalities),
                    Box::new(move |c| {
                        c.update_one(equalities.clone(), doc! { "$set": { "w": 1 } }).upsert().run().map(drop)
                    }),
                )
            }
            4 | 5 => {
                let (update, filters) = self.update();
                (
                    described("update", &update),
                    Box::new(move |c| {
                        c.update_many(doc! {}, update.clone()).array_filters(filters.clone()).run().map(drop)
                    }),
                )
            }
            _ => {
                let stages = self.stages();
                let name = described("aggregate", &doc! { "stages": stages.clone() });
                (name, Box::new(move |c| c.aggregate(stages.clone()).run()?.try_for_each(|row| row.map(drop))))
            }
        }
    }
}

/// Returns a collection of two documents with about `size` parts each, with an index and a wildcard index.
fn documents(db: &slate_core::Database, size: usize) -> Collection<RawDocumentBuf> {
    let c = db.collection::<RawDocumentBuf>("c");
    c.create_index(Index::on(doc! { "v": 1 })).run().unwrap();
    c.create_index(Index::on(doc! { "$**": 1 }).wildcard_projection(doc! { "g0": 1, "g1": 1 })).run().unwrap();
    for id in 0..2 {
        let a: Vec<i32> = (0..size as i32).collect();
        let o: Document = (0..size).map(|at| (format!("f{at}"), Bson::Int32(at as i32))).collect();
        let d: Vec<Document> = (0..size as i32 / 4).map(|at| doc! { "x": at, "y": "t1" }).collect();
        let nested = (0..50).fold(bson!([1]), |inner, _| bson!([inner, 1]));
        let document = doc! { "_id": id, "v": id, "a": a, "s": "ab ".repeat(size), "o": o, "d": d, "n": nested };
        c.insert_one(&common::raw(&document)).unwrap();
    }
    c
}

/// Enough for a call to make much work, so that a part that is not counted shows.
#[cfg(debug_assertions)]
const WITHIN: Duration = Duration::from_millis(250);

/// The most real work between two checks, in elements, comparisons and 64 bytes. At 30 ns each it takes 30 ms.
#[cfg(debug_assertions)]
const MOST: usize = 1_000_000;

#[cfg(debug_assertions)]
#[test]
fn no_call_works_long_between_two_checks() {
    let calls = std::env::var("SLATE_WORK_CALLS").map_or(100, |calls| calls.parse().unwrap());
    let seed: u64 = std::env::var("SLATE_WORK_SEED").map_or(1, |seed| seed.parse().unwrap());
    let test = Store::Memory.open();
    let size = 2_000;
    let c = documents(&test.db, size).with_deadline(WITHIN);
    let mut worst = 0;
    for number in 0..calls {
        let mut draw = Draw { random: Random(seed + number), size };
        let (name, call) = draw.call();
        let start = Instant::now();
        // Many calls are refused, some only after much work.
        let (result, most) = slate_query::work::testing::most_unchecked(|| call(&c));
        let time = start.elapsed();
        if std::env::var("SLATE_WORK_SHOW").is_ok() && time > 3 * WITHIN {
            eprintln!("seed {}: {time:?}, {most} steps: {}", seed + number, name.chars().take(150).collect::<String>());
        }
        worst = worst.max(most);
        assert!(most < MOST, "seed {}: {most} steps without a check, {time:?}: {name}: {result:?}", seed + number);
    }
    eprintln!("at most {worst} steps without a check");
}

/// The time after the deadline within which a call returns.
const LATE: Duration = Duration::from_millis(100);

#[test]
#[ignore = "takes long, and its times are those of an optimized build"]
fn calls_return_soon_after_their_deadline() {
    let seconds = std::env::var("SLATE_WORK_SECONDS").map_or(60, |seconds| seconds.parse().unwrap());
    let seed: u64 = std::env::var("SLATE_WORK_SEED").map_or(1, |seed| seed.parse().unwrap());
    let within = Duration::from_millis(100);
    let (begin, mut number, mut worst, mut late, mut ended) = (Instant::now(), 0, Duration::ZERO, Vec::new(), 0);
    while begin.elapsed().as_secs() < seconds {
        // Documents of up to 16 MiB.
        for size in [5_000, 20_000, 60_000, 200_000] {
            let test = Store::Memory.open();
            let c = documents(&test.db, size);
            for _ in 0..40 {
                number += 1;
                let operands = if number % 3 == 0 { size } else { size.min(20_000) };
                let (name, call) = Draw { random: Random(seed + number), size: operands }.call();
                let limited = c.with_deadline(within);
                let start = Instant::now();
                let result = call(&limited);
                let time = start.elapsed();
                let over = time.saturating_sub(within);
                worst = worst.max(over);
                let is_interrupted =
                    result.as_ref().is_err_and(|error| error.kind() == slate_core::ErrorKind::Interrupted);
                ended += u64::from(is_interrupted);
                if over > LATE {
                    eprintln!(
                        "seed {}, size {size}: {time:?} {:?} {name}",
                        seed + number,
                        result.map_err(|error| error.code())
                    );
                    late.push(over);
                }
            }
        }
    }
    eprintln!("{number} calls, {ended} interrupted, {} late, at most {worst:?} after the deadline", late.len());
    assert!(late.is_empty());
}

#[test]
fn an_argument_beyond_16_mib_is_refused_at_once() {
    let test = Store::Memory.open();
    let c = test.collection("c");
    let large = || doc! { "a": "x".repeat(17 << 20) };
    let refused = [
        c.find(large()).run().map(drop),
        c.find(doc! {}).projection(large()).run().map(drop),
        c.count_documents(large()).run().map(drop),
        c.delete_many(large()).run().map(drop),
        c.update_one(doc! {}, doc! { "$set": large() }).run().map(drop),
        c.update_one(doc! {}, [doc! { "$set": large() }]).upsert().run().map(drop),
        c.aggregate([doc! { "$match": large() }]).run().map(drop),
        // Each stage is small enough, the pipeline is not.
        c.aggregate((0..5).map(|_| doc! { "$match": { "a": "x".repeat(4 << 20) } })).run().map(drop),
        test.db.command(common::raw(&doc! { "find": "c", "filter": large() })).map(drop),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().code(), 10_334);
    }
    let most = doc! { "a": "x".repeat((16 << 20) - 100) };
    assert_eq!(c.count_documents(most).run().unwrap(), 0);
}
