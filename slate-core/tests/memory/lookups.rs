//! Memory of `$lookup` and `$graphLookup`, compared with the `memory_limit` of the call: what one document is joined with, the lists of
//! matches, and the values that matches are searched for.

use allocation_counter::measure;
use bson::{Document, RawDocumentBuf, doc, rawdoc};
use slate_core::{Database, Index};

const LIMIT: usize = 2 << 20;

/// What a call may take beside its limit, in bytes: rows and buffers.
const BESIDE: usize = 2 << 20;

/// A database with the collections `local`, of these documents, and `foreign`.
struct Joined {
    db: Database,
}

impl Joined {
    fn new(local: &[RawDocumentBuf], foreign: &[RawDocumentBuf]) -> Self {
        let db = Database::open("memory:").unwrap();
        db.collection("local").insert_many(local).run().unwrap();
        db.collection("foreign").insert_many(foreign).run().unwrap();
        Self { db }
    }

    fn index(&self) {
        self.db.collection::<RawDocumentBuf>("foreign").create_index(Index::on(doc! { "b": 1 })).run().unwrap();
    }

    /// Executes a `$lookup` and what follows. Returns the number of documents or the code of the error, and the most memory in use.
    fn join(&self, stages: &[Document]) -> (Result<usize, i32>, usize) {
        self.join_within(LIMIT, stages)
    }

    fn join_within(&self, limit: usize, stages: &[Document]) -> (Result<usize, i32>, usize) {
        let lookup = doc! { "$lookup": { "from": "foreign", "localField": "a", "foreignField": "b", "as": "found" } };
        let pipeline: Vec<Document> = std::iter::once(lookup).chain(stages.iter().cloned()).collect();
        let aggregate = self.db.collection::<RawDocumentBuf>("local").aggregate(pipeline).memory_limit(limit);
        let mut result = Ok(0);
        let taken = measure(|| {
            let run = || {
                let (mut cursor, mut count) = (aggregate.cursor()?, 0);
                while cursor.advance()? {
                    count += 1;
                }
                Ok(count)
            };
            result = run().map_err(|error: slate_core::Error| error.code());
        });
        (result, usize::try_from(taken.bytes_max).unwrap())
    }
}

#[test]
fn the_sorts_of_lookups_whose_cursors_wait_hold_a_limited_memory_and_go_on() {
    const CURSORS: usize = 60;
    const PARKED: u64 = 64 << 20;
    let foreign: Vec<_> =
        (0..1_500).map(|id| rawdoc! { "_id": id, "b": id * 7_919 % 1_500, "pad": "x".repeat(1_500) }).collect();
    let joined = Joined::new(&[rawdoc! { "_id": 1, "a": 10 }, rawdoc! { "_id": 2, "a": 700 }], &foreign);
    // Each document has a query of its own, whose sort is read while the document is unwound.
    let lookup = doc! { "$lookup": {
        "from": "foreign", "let": { "a": "$a" }, "as": "found",
        // What is sorted is not what is stored, of which the store in memory would lend the sort its own.
        "pipeline": [
            { "$match": { "$expr": { "$gte": ["$b", "$$a"] } } }, { "$set": { "n": "$b" } }, { "$sort": { "n": 1 } },
        ],
    } };
    let pipeline = [lookup, unwind(), doc! { "$project": { "a": 1, "b": "$found.b" } }];
    let row = |document: &Document| ["a", "b"].map(|field| document.get_i32(field).unwrap());
    let expected: Vec<_> = [10, 700].into_iter().flat_map(|a| (a..1_500).map(move |b| [a, b])).collect();
    let commands = joined.db.commands();
    let batch = |command: Document, name: &str| {
        let reply = Document::try_from(&commands.run(command).unwrap()).unwrap();
        let cursor = reply.get_document("cursor").unwrap();
        let rows = cursor.get_array(name).unwrap().iter().map(|document| row(document.as_document().unwrap()));
        (rows.collect::<Vec<_>>(), cursor.get_i64("id").unwrap())
    };
    let mut cursors = Vec::new();
    let held = measure(|| {
        for size in 0..i32::try_from(CURSORS).unwrap() {
            let aggregate =
                doc! { "aggregate": "local", "pipeline": pipeline.to_vec(), "cursor": { "batchSize": size } };
            cursors.push(batch(aggregate, "firstBatch"));
        }
    });
    let held = u64::try_from(held.bytes_current).unwrap();
    // Together they have sorted more than twice as much.
    assert!(held > PARKED / 2 && held < PARKED + (8 << 20), "{held} bytes");
    for (mut rows, id) in cursors {
        let (second, same) = batch(doc! { "getMore": id, "collection": "local", "batchSize": 20 }, "nextBatch");
        assert_eq!(same, id);
        rows.extend(second);
        rows.extend(batch(doc! { "getMore": id, "collection": "local" }, "nextBatch").0);
        assert!(rows == expected, "{} rows", rows.len());
    }
    assert_eq!(commands.open_cursors(), 0);
}

fn unwind() -> Document {
    doc! { "$unwind": "$found" }
}

#[test]
fn the_matches_of_one_document_are_streamed_or_refused_beyond_16_mib() {
    let many: Vec<_> = (0..40_000).map(|id| rawdoc! { "_id": id, "b": 1, "pad": "x".repeat(1_000) }).collect();
    let joined = Joined::new(&[rawdoc! { "_id": 1, "a": 1 }, rawdoc! { "_id": 2, "a": 1 }], &many);
    let group = doc! { "$group": { "_id": null, "n": { "$sum": 1 }, "x": { "$max": "$found._id" } } };
    for is_indexed in [false, true] {
        if is_indexed {
            joined.index();
        }
        let (found, taken) = joined.join(&[unwind()]);
        assert_eq!(found, Ok(80_000));
        assert!(taken < LIMIT + BESIDE, "{taken} bytes, indexed: {is_indexed}");
        let (found, taken) = joined.join(&[unwind(), group.clone()]);
        assert_eq!(found, Ok(1));
        assert!(taken < LIMIT + BESIDE, "{taken} bytes, indexed: {is_indexed}");
        let (found, taken) = joined.join(&[]);
        assert_eq!(found, Err(4568));
        // A buffer that doubles.
        assert!(taken < 3 * (16 << 20), "{taken} bytes, indexed: {is_indexed}");
    }
}

#[test]
fn a_collection_that_exceeds_the_memory_leaves_none_of_it_taken() {
    let limit = 16 << 20;
    let many: Vec<_> = (0..40_000).map(|id| rawdoc! { "_id": id, "b": 1, "pad": "x".repeat(1_000) }).collect();
    let joined = Joined::new(&[rawdoc! { "_id": 1, "a": 1 }, rawdoc! { "_id": 2, "a": 1 }], &many);
    let (found, taken) = joined.join_within(limit, &[unwind()]);
    assert_eq!(found, Ok(80_000));
    // A buffer of the limit that doubles, or one of half the limit after it.
    assert!(taken < 2 * limit + BESIDE, "{taken} bytes");
}

#[test]
fn documents_with_the_same_value_share_the_list_of_their_matches() {
    let foreign: Vec<_> = (0..20_000).map(|id| rawdoc! { "_id": id, "b": 1 }).collect();
    let local: Vec<_> = (0..1_000).map(|id| rawdoc! { "_id": id, "a": 1 }).collect();
    let joined = Joined::new(&local, &foreign);
    for is_indexed in [false, true] {
        if is_indexed {
            joined.index();
        }
        let (found, taken) = joined.join(&[unwind(), doc! { "$limit": 1 }]);
        assert_eq!(found, Ok(1));
        assert!(taken < LIMIT + BESIDE, "{taken} bytes, indexed: {is_indexed}");
    }
}

#[test]
fn equal_elements_of_a_local_array_have_their_matches_once() {
    let foreign: Vec<_> = (0..3_000).map(|id| rawdoc! { "_id": id, "b": 1 }).collect();
    let joined =
        Joined::new(&[rawdoc! { "_id": 1, "a": vec![1; 3_000].into_iter().collect::<bson::RawArrayBuf>() }], &foreign);
    for is_indexed in [false, true] {
        if is_indexed {
            joined.index();
        }
        let (found, taken) = joined.join(&[unwind()]);
        assert_eq!(found, Ok(3_000));
        assert!(taken < LIMIT + BESIDE, "{taken} bytes, indexed: {is_indexed}");
    }
}

#[test]
fn values_that_alternate_in_a_local_array_take_no_memory_each() {
    let length = 600_000;
    let array: bson::RawArrayBuf = (0..length).map(|place| place % 3).collect();
    let local = rawdoc! { "_id": 1, "a": array };
    let bytes = local.as_bytes().len();
    let joined = Joined::new(&[local], &[rawdoc! { "_id": 0, "b": 0 }, rawdoc! { "_id": 1, "b": 1 }]);
    let (found, taken) = joined.join(&[unwind()]);
    assert_eq!(found, Ok(2));
    // A copy of the document without what is joined, and the row: its buffer, as long as the document, doubles for the joined document, and while
    // it is moved both are there.
    assert!(taken < (1 + 1 + 2) * bytes + (64 << 10), "{taken} bytes for {bytes}");
}

/// Returns documents with arrays of different numbers.
fn with_arrays(documents: i32, length: i32) -> Vec<RawDocumentBuf> {
    let array = |id: i32| (id * length..(id + 1) * length).collect::<bson::RawArrayBuf>();
    (0..documents).map(|id| rawdoc! { "_id": id, "a": array(id) }).collect()
}

#[test]
fn a_batch_ends_with_the_memory_of_its_values() {
    let foreign: Vec<_> = (0..1_000).map(|id| rawdoc! { "_id": id, "b": id * 100 }).collect();
    let joined = Joined::new(&with_arrays(100, 1_000), &foreign);
    joined.index();
    let (found, taken) = joined.join(&[unwind()]);
    assert_eq!(found, Ok(1_000));
    assert!(taken < LIMIT + BESIDE, "{taken} bytes");
}

#[test]
fn a_document_with_very_many_values_is_joined_without_searching_for_them() {
    let length = 400_000;
    let foreign: Vec<_> = (0..1_000).map(|id| rawdoc! { "_id": -id, "b": [id * 1_000, id] }).collect();
    let local: Vec<_> = [rawdoc! { "_id": -1, "a": 5 }].into_iter().chain(with_arrays(2, length)).collect();
    let bytes = local.iter().map(|document| document.as_bytes().len()).max().unwrap();
    let joined = Joined::new(&local, &foreign);
    joined.index();
    let (found, taken) = joined.join(&[unwind()]);
    assert_eq!(found, Ok(1 + 1_000 + 400));
    // The document and its copies, which become rows, and the keys of its values.
    assert!(taken < 5 * bytes + 2 * 24 * usize::try_from(length).unwrap() + LIMIT, "{taken} bytes");
    assert_eq!(joined.join(&[]).0, Ok(3));
}

#[test]
fn the_values_that_a_graph_lookup_searches_for_count_towards_its_limit() {
    let foreign: Vec<_> = (0..10).map(|id| rawdoc! { "_id": id, "b": id }).collect();
    let joined = Joined::new(&with_arrays(1, 1_000_000), &foreign);
    let graph =
        doc! { "from": "foreign", "startWith": "$a", "connectFromField": "b", "connectToField": "b", "as": "found" };
    let aggregate = joined.db.collection::<RawDocumentBuf>("local").aggregate([doc! { "$graphLookup": graph }]);
    let aggregate = aggregate.memory_limit(LIMIT);
    let mut result = Ok(Vec::new());
    let taken = measure(|| result = aggregate.collect());
    assert_eq!(result.unwrap_err().code(), 40_099);
    // The limit is at least 16 MiB; the array has 12 MB, and is copied.
    assert!(taken.bytes_max < 3 * (16 << 20), "{taken:?}");
}

#[test]
fn a_graph_lookup_does_not_count_values_beyond_its_depth() {
    let mut foreign = with_arrays(1, 200_000);
    foreign[0] = rawdoc! { "_id": 1, "b": 1, "a": foreign[0].get_array("a").unwrap().to_owned() };
    let joined = Joined::new(&[rawdoc! { "_id": 1, "a": 1 }], &foreign);
    let graph = |depth| {
        let graph = doc! {
            "from": "foreign", "startWith": "$a", "connectFromField": "a", "connectToField": "b", "as": "found", "maxDepth": depth,
        };
        let aggregate = joined.db.collection::<RawDocumentBuf>("local").aggregate([doc! { "$graphLookup": graph }]);
        aggregate.memory_limit(LIMIT).collect().map(|found| found.len()).map_err(|error| error.code())
    };
    assert_eq!((graph(0), graph(1)), (Ok(1), Err(40_099)));
}
