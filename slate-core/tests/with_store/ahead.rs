//! Fetches on a store on a network: batches travel ahead of the reader, and few records are loaded that nobody reads.

use bson::{Document, doc};
use slate_core::{Collection, Database, Hint, Index};

use crate::distant::{
    DistantStore, LoadEvent,
    LoadEvent::{Awaited, Loaded, Sent},
    LocalDistant, Rounds,
};

/// Returns a collection with an index on `a`.
fn rows(documents: impl Iterator<Item = Document>) -> (Rounds, Collection<Document>) {
    let local = LocalDistant::default();
    let rounds = local.rounds.clone();
    let db = Database::with_store(DistantStore::over(local)).unwrap();
    let rows = db.collection::<Document>("rows");
    rows.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    rows.insert_many(&documents.collect::<Vec<_>>()).run().unwrap();
    // Reads the catalog with the statistics of these documents.
    assert!(rows.find_one(doc! { "_id": 0 }).run().unwrap().is_some());
    rounds.take_loads();
    (rounds, rows)
}

fn by_index() -> Hint {
    Hint::Name("a_1".into())
}

fn loaded(loads: &[LoadEvent]) -> usize {
    loads.iter().map(|load| if let Loaded(keys) | Sent(keys) = load { *keys } else { 0 }).sum()
}

#[test]
fn batches_are_requested_before_their_reader_needs_them() {
    let (rounds, rows) = rows((0..3_000).map(|n| doc! { "_id": n, "a": n }));
    let mut found = rows.find(doc! { "a": { "$gte": 0 } }).hint(by_index()).run().unwrap();
    let mut read = |records: usize| {
        assert_eq!(found.by_ref().take(records).map(Result::unwrap).count(), records);
        rounds.take_loads()
    };
    assert_eq!(read(256), [Loaded(256)], "the reader of one batch may need no other");
    // One, two, four: the records of later batches can be longer. Then one for each that was read.
    for sent in [1, 2, 3, 1] {
        assert_eq!(read(1), [&vec![Sent(256); sent][..], &[Awaited(256)]].concat());
        assert!(read(255).is_empty());
    }
    rounds.take();
    // The last batch has 184 records.
    let rest = read(3_000 - 5 * 256);
    assert_eq!((loaded(&rest), rest.last()), (3_000 - 8 * 256, Some(&Awaited(184))));
    assert!(found.next().is_none());
    // Seven batches beside pages of the index: they travel side by side.
    assert!(rounds.take() <= 7, "{rest:?}");
}

#[test]
fn a_limit_is_reached_with_few_records_beyond_it() {
    let (rounds, rows) = rows((0..6_000).map(|n| doc! { "_id": n, "a": n, "even": n % 2 == 0 }));
    let filter = || doc! { "a": { "$gte": 0 } };
    assert_eq!(rows.find(filter()).hint(by_index()).limit(10).run().unwrap().count(), 10);
    assert_eq!(loaded(&rounds.take_loads()), 10);
    assert_eq!(rows.find(filter()).hint(by_index()).skip(2_000).limit(600).run().unwrap().count(), 600);
    assert_eq!(loaded(&rounds.take_loads()), 600);
    // A filter that accepts half of the records.
    let half = doc! { "a": { "$gte": 0 }, "even": true };
    assert_eq!(rows.find(half.clone()).hint(by_index()).limit(1_000).run().unwrap().count(), 1_000);
    let loads = rounds.take_loads();
    assert!((2_000..2_020).contains(&loaded(&loads)), "{loads:?}");
    assert_eq!(
        loads.iter().filter(|load| matches!(load, Loaded(_))).count(),
        1,
        "the others travelled ahead: {loads:?}"
    );
    assert_eq!(rows.find(half).hint(by_index()).limit(3).run().unwrap().count(), 3);
    let loads = rounds.take_loads();
    assert!(loaded(&loads) <= 8, "{loads:?}");
}

#[test]
fn batches_ahead_are_bounded_by_bytes() {
    const BYTES: usize = 20_000;
    let (rounds, rows) = rows((0..1_000).map(|n| doc! { "_id": n, "a": n, "text": "x".repeat(BYTES) }));
    let mut found = rows.find(doc! { "a": { "$gte": 0 } }).hint(by_index()).run().unwrap();
    // The first batch, and as many records as three of two MiB have: then four travel.
    let read = 256 + 3 * ((2 << 20) / BYTES);
    assert_eq!(found.by_ref().take(read).map(Result::unwrap).count(), read);
    let ahead: Vec<_> = rounds.take_loads().into_iter().filter(|load| matches!(load, Sent(_))).collect();
    assert!(ahead.len() > 4 && ahead.iter().all(|load| loaded(&[*load]) * BYTES <= 2 << 20), "{ahead:?}");
    assert_eq!(found.count(), 1_000 - read);
}

#[test]
fn long_records_after_short_ones_travel_in_one_batch() {
    let text = |n: i32| if n < 256 { String::new() } else { "x".repeat(20_000) };
    let (rounds, rows) = rows((0..1_000).map(|n| doc! { "_id": n, "a": n, "text": text(n) }));
    let mut found = rows.find(doc! { "a": { "$gte": 0 } }).hint(by_index()).run().unwrap();
    assert_eq!(found.by_ref().take(257).map(Result::unwrap).count(), 257);
    assert_eq!(rounds.take_loads(), [Loaded(256), Sent(256), Awaited(256)]);
    assert_eq!(found.by_ref().take(256).map(Result::unwrap).count(), 256);
    let next = rounds.take_loads();
    assert!(loaded(&next) <= 2 * ((2 << 20) / 20_000), "{next:?}");
}

#[test]
fn a_cursor_that_waits_for_get_more_holds_no_batches_that_travel() {
    let local = LocalDistant::default();
    let rounds = local.rounds.clone();
    let db = Database::with_store(DistantStore::over(local)).unwrap();
    let rows = db.collection::<Document>("rows");
    rows.create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    rows.insert_many(&(0..3_000).map(|n| doc! { "_id": n, "a": n }).collect::<Vec<_>>()).run().unwrap();
    let commands = db.commands();
    let run = |command: Document| Document::try_from(&commands.run(command).unwrap()).unwrap();
    rounds.take_loads();
    let find = doc! { "find": "rows", "filter": { "a": { "$gte": 0 } }, "hint": "a_1", "batchSize": 700 };
    let id = run(find).get_document("cursor").unwrap().get_i64("id").unwrap();
    let loads = rounds.take_loads();
    // The catalog was read before.
    assert!(loads.ends_with(&[Loaded(256), Sent(256), Awaited(256), Sent(256), Sent(256), Awaited(256)]), "{loads:?}");
    let more = run(doc! { "getMore": id, "collection": "rows", "batchSize": 2_300 });
    assert_eq!(more.get_document("cursor").unwrap().get_array("nextBatch").unwrap().len(), 2_300);
    let loads = rounds.take_loads();
    // The fourth batch had travelled, and is loaded again.
    assert!(loads.contains(&Loaded(256)), "{loads:?}");
    assert_eq!(loads.iter().filter(|load| matches!(load, Awaited(_))).count(), 8, "{loads:?}");
}

#[test]
fn a_transaction_finds_its_own_writes_among_batches_that_travelled() {
    let local = LocalDistant::default();
    let rounds = local.rounds.clone();
    let db = Database::with_store(DistantStore::over(local)).unwrap();
    let all: Vec<_> = (0..2_000).map(|n| doc! { "_id": n, "a": n, "n": 0 }).collect();
    db.collection::<Document>("rows").create_index(Index::on(doc! { "a": 1 })).run().unwrap();
    db.collection::<Document>("rows").insert_many(&all).run().unwrap();
    let transaction = db.begin().unwrap();
    let rows = transaction.collection::<Document>("rows");
    rows.update_many(doc! { "_id": { "$gte": 1_500 } }, doc! { "$set": { "n": 1 } }).run().unwrap();
    rows.delete_many(doc! { "_id": { "$lt": 100 } }).run().unwrap();
    rounds.take_loads();
    let found = rows.find(doc! { "a": { "$gte": 0 } }).hint(by_index()).run().unwrap();
    let changed: i32 = found.map(|row| row.unwrap().get_i32("n").unwrap()).sum();
    assert_eq!(changed, 500);
    assert!(rounds.take_loads().contains(&Sent(256)));
}
