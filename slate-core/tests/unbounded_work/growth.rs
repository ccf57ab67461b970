//! The work of a call grows no faster than n log n with its n operands.
//!
//! Each operator and construct whose operand is a list or a document of any size is called with `FEW` operands, with `N`, and with four times
//! as many. What is counted is the work of the lowest layer (elements read, values compared, bytes written), the steps that are counted
//! against the deadline, and the bytes that are allocated. Documents grow with the operands.
//!
//! ```sh
//! SLATE_GROWTH_SHOW=1 cargo test -p slate-core --test unbounded_work growth -- --nocapture
//! ```
//!
//! prints all counts, and the time on a processor; `SLATE_GROWTH_OPERANDS` changes the number, `SLATE_GROWTH_ONLY` selects calls by a part
//! of their names.

#[path = "growth/calls.rs"]
mod calls;
#[path = "growth/filters.rs"]
mod filters;
#[path = "growth/values.rs"]
mod values;

use bson::{Bson, Document, RawDocumentBuf, bson, doc};
use slate_core::{Collection, Database, Index, Result};

use super::common::{self, Store};

type Documents = Collection<RawDocumentBuf>;

const FEW: usize = 4;
const N: usize = 100;

/// What `4 * N` operands may take beside four times what `N` take: `log(4 * N) / log(N)` is 1.2.
const PER_FOUR: u64 = 5;

/// What each operand may take beside that: thresholds, below which steps are not counted, lie between the sizes.
const PER_OPERAND: u64 = 100;

type Run = dyn Fn(&Collections) -> Result<()>;

/// A call with arguments that are bytes already.
struct Call {
    name: String,
    run: Box<Run>,
}

impl Call {
    fn new(name: impl Into<String>, run: impl Fn(&Collections) -> Result<()> + 'static) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// The collections that calls use.
struct Collections {
    db: Database,
    /// A few small documents, with different indexes.
    small: Vec<(&'static str, Documents)>,
    /// Documents whose parts have n elements.
    large: Documents,
    documents: Vec<RawDocumentBuf>,
    /// n documents.
    rows: Documents,
}

impl Collections {
    fn new(db: &Database, n: usize) -> Self {
        let collection = |name: &str| db.collection::<RawDocumentBuf>(name);
        let index = |c: &Documents, keys: Document| drop(c.create_index(Index::on(keys)).run().unwrap());
        let indexes: [(&str, &[Document]); 6] = [
            ("no index", &[]),
            ("one index", &[doc! { "v": 1 }]),
            ("several indexes", &[doc! { "v": 1 }, doc! { "w": -1 }, doc! { "x": 1 }]),
            ("compound indexes", &[doc! { "v": 1, "w": 1 }, doc! { "w": 1, "x": 1 }, doc! { "x": 1, "v": 1, "w": 1 }]),
            ("multikey indexes", &[doc! { "a": 1 }, doc! { "a": 1, "v": 1 }, doc! { "d.x": 1, "d.y": 1 }]),
            ("a wildcard index", &[doc! { "$**": 1 }]),
        ];
        let small: Vec<(&str, Documents)> = indexes
            .iter()
            .map(|(name, keys)| {
                let c = collection(name);
                keys.iter().for_each(|keys| index(&c, keys.clone()));
                c.insert_many(&(0..4).map(small_document).collect::<Vec<_>>()).run().unwrap();
                (*name, c)
            })
            .collect();
        for (name, options) in [("v", 0), ("w", 1), ("x", 2)] {
            let c = collection("more indexes");
            let index = Index::on(doc! { name: 1 }).named(name);
            c.create_index(match options {
                0 => index.sparse(),
                1 => index.only(doc! { "v": { "$gte": 0 } }),
                _ => index.collation(doc! { "locale": "en", "strength": 2 }),
            })
            .run()
            .unwrap();
        }
        let more = collection("more indexes");
        more.insert_many(&(0..4).map(small_document).collect::<Vec<_>>()).run().unwrap();
        let large = collection("large");
        let rows = collection("rows");
        index(&rows, doc! { "v": 1 });
        let many: Vec<RawDocumentBuf> = shuffled(n)
            .map(|at| common::raw(&doc! { "_id": at, "v": at, "t": at % 7, "u": at, "next": at + 1, "a": [at, at + 1], "d": { "x": at }, "f": format!("f{at}") }))
            .collect();
        rows.insert_many(&many).run().unwrap();
        let small = small.into_iter().chain([("sparse, partial and collated indexes", more)]).collect();
        let collections = Self { db: db.clone(), small, large, documents: large_documents(n), rows };
        collections.reset();
        collections
    }

    /// Undoes what a call has changed in the large documents.
    fn reset(&self) {
        self.large.delete_many(doc! {}).run().unwrap();
        self.large.insert_many(&self.documents).run().unwrap();
    }
}

fn small_document(id: i32) -> RawDocumentBuf {
    common::raw(
        &doc! { "_id": id, "v": id, "w": id, "x": id, "a": [id, 1], "d": [{ "x": id, "y": 1 }, { "x": 2, "y": id }] },
    )
}

/// Returns the numbers below n, out of order.
fn shuffled(n: usize) -> impl Iterator<Item = i32> + Clone {
    // 7,919 is a prime.
    (0..n).map(move |at| (at * 7_919 % n) as i32)
}

fn numbers(n: usize) -> Vec<Bson> {
    shuffled(n).map(Bson::Int32).collect()
}

fn list(n: usize, each: impl Fn(i32) -> Bson) -> Vec<Bson> {
    shuffled(n).map(each).collect()
}

fn fields(n: usize, each: impl Fn(i32) -> (String, Bson)) -> Document {
    shuffled(n).map(each).collect()
}

fn large_documents(n: usize) -> Vec<RawDocumentBuf> {
    let parts = doc! {
        "a": numbers(n),
        "b": list(n, |at| (at / 2).into()),
        "s": list(n, |at| format!("text {at}").into()),
        "d": list(n, |at| bson!({ "x": at, "y": -at, "z": [at] })),
        "o": fields(n, |at| (format!("f{at}"), at.into())),
        "m": fields(n, |at| (format!("f{at}"), bson!([at, { "x": at, "y": 1 }]))),
        "p": list(n, |at| bson!([format!("k{at}"), at])),
        "l": list(n, |at| bson!([at, at + 1])),
        "e": list(20, |at| bson!({ "x": at % 3, "y": at })),
        "t": "ab ".repeat(n),
    };
    (0..2)
        .map(|id| {
            let mut document = doc! { "_id": id, "v": id };
            document.extend(parts.clone());
            common::raw(&document)
        })
        .chain([common::raw(&doc! { "_id": 2, "v": 2 }), {
            let mut wide = doc! { "_id": 3, "v": 3 };
            // Enough fields at every size that it has no field table.
            wide.extend(fields(n + 300, |at| (format!("f{at}"), at.into())));
            common::raw(&wide)
        }])
        .collect()
}

/// What a call has taken.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    work: u64,
    steps: u64,
    bytes: u64,
    microseconds: u64,
}

impl Taken {
    fn counted(self) -> [(&'static str, u64); 3] {
        [("work", self.work), ("steps", self.steps), ("bytes / 64", self.bytes / 64)]
    }
}

/// The time that this thread has had a processor.
fn processor_time() -> u64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    statistics.split_whitespace().next().and_then(|nanoseconds| nanoseconds.parse().ok()).unwrap_or(0)
}

fn measure(call: &Call, collections: &Collections) -> Taken {
    let mut taken = Taken::default();
    let begin = processor_time();
    let run = || {
        let result = (call.run)(collections);
        assert!(result.is_ok(), "{}: {result:?}", call.name);
    };
    taken.bytes = allocation_counter::measure(|| {
        #[cfg(debug_assertions)]
        {
            let ((), total) = slate_query::work::testing::total(run);
            (taken.work, taken.steps) = (total.work as u64, total.steps as u64);
        }
        #[cfg(not(debug_assertions))]
        run();
    })
    .bytes_total;
    taken.microseconds = (processor_time() - begin) / 1_000;
    taken
}

/// Calls whose work grows faster, by their names, and why. They are executed if all counts are shown, or by name.
const FASTER: [(&str, &[&str]); 7] = [
    (
        "each condition searches the fields of a document of n fields, which BSON does not sort",
        &[
            "find in large documents: many fields",
            "find in large documents: many fields with $in",
            "find in large documents: many paths",
            "find in large documents: $and of many fields",
            "find in large documents: $and of $exists",
            "find in large documents: $and of several fields",
            "find in large documents: $and of $nor",
            "find in large documents: $or of several fields",
            "find in large documents: $or of $or",
            "find in large documents: $expr $or of fields",
            "find in large documents: $or of many paths",
            "find in large documents: $or beside many conditions",
            "find in large documents: $elemMatch of many fields",
            "find in large documents: $jsonSchema dependencies",
            "find in large documents: $jsonSchema dependencies of one field",
            "expression $map with $getField",
            "expression $add of fields",
            "expression a document of paths",
            "projection of computed fields",
            "projection of computed paths",
            "projection of elements of many arrays",
            "large: $project of computed fields",
            "update $rename of paths",
            "update $rename out of a document",
        ],
    ),
    (
        "each condition is evaluated on each element of an array, or on each row",
        &[
            "find in large documents: $all of $elemMatch",
            "find in large documents: $and of $elemMatch",
            "find in large documents: $and of $gt on an array",
            "find in large documents: $or of $elemMatch",
            "find in large documents: $or of $elemMatch of ranges",
            "find in large documents: $or of ranges on several fields",
            "find in large documents: $or of documents in two orders",
            "find of rows by $or of documents",
            "find of rows by $or of ranges",
        ],
    ),
    (
        "an expression over an array is evaluated for each element of another one",
        &[
            "expression $filter with $in",
            "expression $map with $arrayElemAt",
            "expression $map with $arrayElemAt constants",
            "expression $map with $indexOfArray constants",
            "expression $map with $setIntersection",
            "expression $map with $setIsSubset",
            "expression $reduce with $concat",
            "expression $reduce with $concatArrays",
            "expression $reduce with $mergeObjects",
            "expression $reduce with $setUnion",
        ],
    ),
    (
        "each function of a window reads the partition",
        &["rows: $setWindowFields with many fields on few rows", "rows: $fill of many fields on few rows"],
    ),
    ("each stage writes a document of n fields", &["large: many $addFields"]),
    (
        "each window that slides is computed from its rows: taking a row away from a sum of squares would round in another way",
        &[
            "$setWindowFields $covariancePop of a long range by v",
            "$setWindowFields $covariancePop of a long window by t",
            "$setWindowFields $covariancePop of a long window by v",
            "$setWindowFields $covariancePop of a window to the last row by t",
            "$setWindowFields $covariancePop of a window to the last row by v",
            "$setWindowFields $stdDevPop of a window to the last row by t",
            "$setWindowFields $stdDevPop of a window to the last row by v",
        ],
    ),
    ("each condition of a partial index is compared with each of the filter", &["partial index by many fields"]),
];

/// Calls whose work is seen to grow faster only with more than `4 * N` operands: fields that are searched in documents of n fields, and
/// windows that slide, of which the first ones only grow.
const FASTER_LATER: [&str; 7] = [
    "find in large documents: $expr $and of fields",
    "find in large documents: $jsonSchema properties",
    "find in large documents: $jsonSchema required",
    "find in large documents: $jsonSchema additionalProperties",
    "$setWindowFields $stdDevPop of a long range by v",
    "$setWindowFields $stdDevPop of a long window by t",
    "$setWindowFields $stdDevPop of a long window by v",
];

fn is_faster(name: &str) -> bool {
    FASTER.iter().any(|(_, names)| names.contains(&name))
}

/// Returns what grows faster than allowed.
fn faster(few: Taken, some: Taken, many: Taken, n: usize) -> String {
    let mut faster = String::new();
    for ((what, few), ((_, some), (_, many))) in
        few.counted().into_iter().zip(some.counted().into_iter().zip(many.counted()))
    {
        let (some, many) = (some.saturating_sub(few), many.saturating_sub(few));
        if many > PER_FOUR * some + PER_OPERAND * 4 * n as u64 {
            faster.push_str(&format!("{what}: {some} with {n}, {many} with {} operands; ", 4 * n));
        }
    }
    faster
}

#[test]
fn work_grows_no_faster_than_n_log_n() {
    let shows = std::env::var("SLATE_GROWTH_SHOW").is_ok();
    let only = std::env::var("SLATE_GROWTH_ONLY").ok();
    let n = std::env::var("SLATE_GROWTH_OPERANDS").map_or(N, |n| n.parse().unwrap());
    let sizes = [FEW, n, 4 * n];
    let tests = sizes.map(|_| Store::Memory.open());
    let collections: [Collections; 3] = std::array::from_fn(|at| Collections::new(&tests[at].db, sizes[at]));
    let calls: [Vec<Call>; 3] = std::array::from_fn(|at| {
        let (n, collections) = (sizes[at], &collections[at]);
        [filters::calls(n, collections), values::calls(n), calls::calls(n)].into_iter().flatten().collect()
    });
    let [few, some, many] = calls;
    let (mut broken, mut count) = (Vec::new(), 0);
    let is_call = |name: &&str| few.iter().any(|call| call.name == *name);
    broken.extend(
        FASTER
            .iter()
            .flat_map(|(_, names)| *names)
            .chain(&FASTER_LATER)
            .filter(|name| !is_call(name))
            .map(|name| format!("no call: {name}")),
    );
    for ((few, some), many) in few.iter().zip(&some).zip(&many) {
        let is_named = only.as_ref().is_some_and(|only| few.name.contains(&**only));
        if (only.is_some() || (!shows && is_faster(&few.name))) && !is_named {
            continue;
        }
        count += 1;
        // Buffers and tables that are made once are not counted.
        measure(few, &collections[0]);
        if few.name.starts_with("update") {
            collections[0].reset();
        }
        let taken: [Taken; 3] = std::array::from_fn(|at| {
            let taken = measure([few, some, many][at], &collections[at]);
            if few.name.starts_with("update") {
                collections[at].reset();
            }
            taken
        });
        let faster = faster(taken[0], taken[1], taken[2], n);
        if shows {
            eprintln!(
                "{} {}: {:?} {:?} {faster}",
                if faster.is_empty() { "ok" } else { "FASTER" },
                few.name,
                taken[1],
                taken[2]
            );
        }
        if n == N && faster.is_empty() && is_faster(&few.name) {
            broken.push(format!("{} grows no faster any more", few.name));
        }
        let is_known = is_faster(&few.name) || (n > N && FASTER_LATER.contains(&&*few.name));
        if !faster.is_empty() && !is_known {
            broken.push(format!("{}: {faster}({} us, {} us)", few.name, taken[1].microseconds, taken[2].microseconds));
        }
    }
    assert!(broken.is_empty(), "{} of {count} calls: {broken:#?}", broken.len());
}
