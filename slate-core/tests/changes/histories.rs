//! The events of random histories rebuild the collections.

use std::collections::BTreeMap;

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{Collection, Database, TransactionOptions};

use crate::{NO_STAGES, decoded, logged};

/// A small generator of random numbers (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    fn small(&mut self) -> i32 {
        i32::try_from(self.below(8)).unwrap()
    }

    fn value(&mut self, depth: u32) -> Bson {
        match self.below(if depth == 0 { 3 } else { 6 }) {
            0 => Bson::Int32(self.small()),
            1 => Bson::String("s".repeat(usize::try_from(self.below(4)).unwrap())),
            2 => Bson::Null,
            3 => Bson::Array((0..self.below(5)).map(|_| self.value(depth - 1)).collect()),
            _ => Bson::Document(self.fields(depth - 1)),
        }
    }

    fn fields(&mut self, depth: u32) -> Document {
        const NAMES: [&str; 7] = ["a", "b", "c", "d", "a.b", "0", "e"];
        let mut fields = Document::new();
        for _ in 0..self.below(5) {
            fields.insert(*self.pick(&NAMES), self.value(depth));
        }
        fields
    }

    fn update(&mut self) -> Vec<Document> {
        const PATHS: [&str; 8] = ["a", "b", "a.b", "b.c", "a.0", "d.1.a", "e", "c.c"];
        let path = *self.pick(&PATHS);
        let value = self.value(2);
        match self.below(12) {
            0 => vec![doc! { "$set": { path: value } }],
            1 => vec![doc! { "$unset": { path: 1 } }],
            2 => vec![doc! { "$push": { path: { "$each": [value, 1], "$slice": 4 } } }],
            3 => vec![doc! { "$pop": { path: 1 } }],
            4 => vec![doc! { "$pull": { path: self.small() } }],
            5 => vec![doc! { "$inc": { path: 1 } }],
            6 => vec![doc! { "$rename": { "a": "z", "z2": "a" } }],
            7 => vec![doc! { "$addToSet": { path: value } }],
            8 => vec![doc! { "$min": { path: value } }, doc! {}],
            9 => vec![doc! { "$set": { "a": value, "z": "$b" } }, doc! { "$unset": "c" }],
            10 => vec![doc! { "$replaceWith": { "$mergeObjects": [self.fields(2), { "_id": "$_id" }] } }],
            _ => vec![doc! { "$set": { "b": { "$reverseArray": { "$ifNull": ["$d", []] } } } }, doc! { "$unset": "d" }],
        }
    }
}

/// Makes a random change.
fn act(random: &mut Random, collection: &Collection<RawDocumentBuf>) -> slate_core::Result<()> {
    let raw = |document: &Document| RawDocumentBuf::try_from(document).unwrap();
    let id = random.small();
    match random.below(10) {
        0 | 1 => {
            let mut document = doc! { "_id": id };
            document.extend(random.fields(3));
            let mut other = document.clone();
            other.insert("_id", random.small() + 8);
            collection.insert_many(&[raw(&document), raw(&other)]).ordered(false).run().map(drop)
        }
        2 => collection.delete_many(doc! { "_id": { "$in": [id, id + 1] } }).run().map(drop),
        3 => collection.replace_one(doc! { "_id": id }, &raw(&random.fields(3))).upsert().run().map(drop),
        4 => {
            let mut document = doc! { "_id": id };
            document.extend(random.fields(2));
            collection.merge_many(&[raw(&document), raw(&doc! { "_id": id, "m": 1 })]).map(drop)
        }
        5 if random.below(4) == 0 => {
            let pipeline = [doc! { "$match": { "_id": { "$gte": id } } }, doc! { "$out": collection.name() }];
            collection.aggregate(pipeline).collect().map(drop)
        }
        5 if random.below(8) == 0 => collection.drop().map(drop),
        _ => {
            let update = random.update();
            let filter = doc! { "_id": { "$gte": id } };
            let is_pipeline = update.len() > 1 || update[0].keys().any(|name| name == "$replaceWith");
            if is_pipeline && update[0].keys().any(|name| name != "$min") {
                collection.update_many(filter, update).run().map(drop)
            } else {
                collection.update_many(filter, update[0].clone()).run().map(drop)
            }
        }
    }
}

/// Sets or removes the value at a path: of fields and positions in arrays.
fn at<'d>(document: &'d mut Document, path: &[Bson]) -> (Option<&'d mut Document>, Option<&'d mut Vec<Bson>>) {
    let Some((first, rest)) = path.split_first() else { return (Some(document), None) };
    within(document.get_mut(first.as_str().unwrap()).unwrap(), rest)
}

fn within<'d>(value: &'d mut Bson, path: &[Bson]) -> (Option<&'d mut Document>, Option<&'d mut Vec<Bson>>) {
    match (value, path.split_first()) {
        (Bson::Document(document), _) => at(document, path),
        (Bson::Array(array), None) => (None, Some(array)),
        (Bson::Array(array), Some((first, rest))) => {
            within(&mut array[usize::try_from(first.as_i32().unwrap()).unwrap()], rest)
        }
        (other, _) => panic!("{other} is no container"),
    }
}

/// Applies an `updateDescription` to a document.
pub(crate) fn apply(document: &mut Document, description: &Document) {
    let ambiguous = description.get_document("disambiguatedPaths").cloned().unwrap_or_default();
    let steps = |document: &Document, path: &str| -> Vec<Bson> {
        if let Ok(steps) = ambiguous.get_array(path) {
            return steps.clone();
        }
        // A number is a position if it follows the path of an array.
        let (mut steps, mut value) = (Vec::new(), Bson::Document(document.clone()));
        for part in path.split('.') {
            let next = match &value {
                Bson::Array(array) => {
                    let position: usize = part.parse().unwrap();
                    steps.push(Bson::Int32(i32::try_from(position).unwrap()));
                    array.get(position).cloned()
                }
                Bson::Document(document) => {
                    steps.push(Bson::String(part.into()));
                    document.get(part).cloned()
                }
                other => panic!("{other} is no container"),
            };
            value = next.unwrap_or(Bson::Null);
        }
        steps
    };
    for truncated in description.get_array("truncatedArrays").unwrap() {
        let truncated = truncated.as_document().unwrap();
        let path = steps(document, truncated.get_str("field").unwrap());
        let array = at(document, &path).1.unwrap();
        array.truncate(usize::try_from(truncated.get_i32("newSize").unwrap()).unwrap());
    }
    for removed in description.get_array("removedFields").unwrap() {
        let path = steps(document, removed.as_str().unwrap());
        let (last, parents) = path.split_last().unwrap();
        at(document, parents).0.unwrap().remove(last.as_str().unwrap());
    }
    for (path, value) in description.get_document("updatedFields").unwrap() {
        let path = steps(document, path);
        let (last, parents) = path.split_last().unwrap();
        match (last, at(document, parents)) {
            (Bson::String(name), (Some(parent), _)) => drop(parent.insert(name, value.clone())),
            (Bson::Int32(position), (_, Some(array))) => {
                let position = usize::try_from(*position).unwrap();
                array.resize(array.len().max(position + 1), Bson::Null);
                array[position] = value.clone();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Equal but for the order of fields.
fn same(a: &Bson, b: &Bson) -> bool {
    match (a, b) {
        (Bson::Document(a), Bson::Document(b)) => {
            a.len() == b.len() && a.iter().all(|(name, value)| b.get(name).is_some_and(|other| same(value, other)))
        }
        (Bson::Array(a), Bson::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => a == b,
    }
}

pub(crate) type Contents = BTreeMap<String, BTreeMap<String, Document>>;

/// Applies an event to a copy.
pub(crate) fn replay(copy: &mut Contents, event: &Document) {
    let name = event.get_document("ns").unwrap().get_str("coll").unwrap_or_default().to_owned();
    let key = event.get_document("documentKey").map(ToString::to_string).unwrap_or_default();
    let documents = copy.entry(name.clone()).or_default();
    match event.get_str("operationType").unwrap() {
        "insert" => {
            let before = documents.insert(key, event.get_document("fullDocument").unwrap().clone());
            assert!(before.is_none(), "{event} was there");
        }
        "replace" => {
            let before = documents.insert(key, event.get_document("fullDocument").unwrap().clone());
            assert!(before.is_some(), "{event} was not there");
        }
        "update" => {
            let document = documents.get_mut(&key).unwrap();
            apply(document, event.get_document("updateDescription").unwrap());
            if let Ok(full) = event.get_document("fullDocument") {
                let full = Bson::Document(full.clone());
                assert!(same(&full, &Bson::Document(document.clone())), "{event} made {document}");
            }
        }
        "delete" => assert!(documents.remove(&key).is_some(), "{event} was not there"),
        "drop" => drop(copy.remove(&name)),
        _ => {}
    }
}

pub(crate) fn assert_copied(copy: &Contents, database: &Database) {
    for name in ["a", "b"] {
        let documents: Vec<Document> = database.collection(name).find(doc! {}).collect().unwrap();
        let copied = copy.get(name).cloned().unwrap_or_default();
        assert_eq!(copied.len(), documents.len(), "{name}");
        for document in documents {
            let key = doc! { "_id": document.get("_id").unwrap() }.to_string();
            assert!(same(&Bson::Document(copied[&key].clone()), &Bson::Document(document)), "{name} {key}");
        }
    }
}

#[test]
fn the_events_of_a_random_history_rebuild_the_collections() {
    for seed in 0..3 {
        logged(|mut database| {
            let mut random = Random(seed);
            let mut copy = Contents::new();
            database.collection("a").create().unwrap();
            database.collection("a").keep_images(true).unwrap();
            let mut token = database.db.watch(NO_STAGES).run().unwrap().resume_token();
            for _ in 0..3 {
                for _ in 0..60 {
                    let name = *random.pick(&["a", "b"]);
                    if random.below(5) == 0 {
                        // Several calls in a transaction, some of which fail.
                        let seed = random.below(u64::MAX);
                        let _ = database.db.transact_with(&TransactionOptions::new(), |tx| {
                            let mut random = Random(seed);
                            for _ in 0..4 {
                                let name = *random.pick(&["a", "b"]);
                                let _ = act(&mut random, &tx.collection(name));
                            }
                            if random.below(4) == 0 { Err(slate_core::Error::custom("no")) } else { Ok(()) }
                        });
                    } else {
                        let _ = act(&mut random, &database.collection(name));
                    }
                }
                let watch = database.db.watch(NO_STAGES).resume_after(&token).expanded_events();
                let mut stream = watch.full_document(slate_core::FullDocument::WhenAvailable).run().unwrap();
                while let Some(event) = stream.next_within(std::time::Duration::ZERO).unwrap() {
                    replay(&mut copy, &decoded(&event));
                }
                assert_copied(&copy, &database.db);
                token = stream.resume_token();
                drop(stream);
                database = database.reopen();
            }
        });
    }
}

#[test]
fn the_events_of_concurrent_writers_rebuild_the_collections() {
    logged(|database| {
        let db = &database.db;
        let mut stream = db.watch(NO_STAGES).expanded_events().run().unwrap();
        let mut copy = Contents::new();
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|seed| {
                    scope.spawn(move || {
                        let mut random = Random(100 + seed);
                        for _ in 0..60 {
                            let name = *random.pick(&["a", "b"]);
                            let _ = act(&mut random, &db.collection(name));
                        }
                    })
                })
                .collect();
            while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                while let Some(event) = stream.next_within(std::time::Duration::from_millis(1)).unwrap() {
                    replay(&mut copy, &decoded(&event));
                }
            }
        });
        while let Some(event) = stream.next_within(std::time::Duration::ZERO).unwrap() {
            replay(&mut copy, &decoded(&event));
        }
        assert_copied(&copy, db);
    });
}

#[test]
fn a_live_query_has_the_rows_of_the_query_at_every_step() {
    for seed in 0..3 {
        logged(|database| {
            let mut random = Random(seed);
            let collection = database.collection("a");
            let queries = [
                (doc! {}, doc! {}, 0_u64),
                (doc! { "a": { "$exists": true } }, doc! { "a": 1 }, 3),
                (doc! { "_id": { "$gte": 2 } }, doc! { "b": -1, "_id": -1 }, 4),
                (doc! { "$or": [{ "b": null }, { "a": { "$gt": 2 } }] }, doc! { "z": 1 }, 1),
                (doc! { "m": 1 }, doc! { "_id": -1 }, 0),
            ];
            let find = |(filter, sort, limit): &(Document, Document, u64)| {
                let mut sort = sort.clone();
                sort.entry("_id".to_owned()).or_insert(Bson::Int32(1));
                let find = collection.find(filter).sort(&sort);
                if *limit > 0 { find.limit(*limit) } else { find }
            };
            let mut live: Vec<_> = queries.iter().map(|query| (find(query).live().unwrap(), Vec::new())).collect();
            for _ in 0..80 {
                for _ in 0..=random.below(3) {
                    let _ = act(&mut random, &collection);
                }
                for (query, (live, rows)) in queries.iter().zip(&mut live) {
                    while let Some(step) = live.next_within(std::time::Duration::ZERO).unwrap() {
                        step.apply(rows);
                    }
                    assert_eq!(*rows, find(query).collect().unwrap(), "{query:?}");
                }
            }
        });
    }
}

#[test]
fn the_steps_of_a_live_query_are_few() {
    logged(|database| {
        let users = database.collection("users");
        let row = |id: i32, n: i32| bson::rawdoc! { "_id": id, "n": n };
        users.insert_many(&(0..6).map(|id| row(id, id)).collect::<Vec<_>>()).run().unwrap();
        let mut live = users.find(doc! { "n": { "$lt": 100 } }).sort(doc! { "n": 1 }).limit(4).live().unwrap();
        let mut steps = || {
            let next = || live.next_within(std::time::Duration::ZERO).unwrap();
            std::iter::from_fn(next).collect::<Vec<_>>()
        };
        use slate_core::LiveChange::{Added, Changed, Moved, Removed};
        let first: Vec<_> = (0..4)
            .map(|position| Added {
                position,
                document: row(i32::try_from(position).unwrap(), i32::try_from(position).unwrap()),
            })
            .collect();
        assert_eq!(steps(), first);
        let set =
            |id: i32, change: Document| users.update_one(doc! { "_id": id }, doc! { "$set": change }).run().unwrap();
        set(5, doc! { "n": 50 });
        assert_eq!(steps(), [], "outside of the window");
        set(1, doc! { "n": 1, "x": 1 });
        assert_eq!(steps(), [Changed { position: 1, document: bson::rawdoc! { "_id": 1, "n": 1, "x": 1 } }]);
        set(3, doc! { "n": -1 });
        assert_eq!(steps(), [Moved { from: 3, to: 0, document: row(3, -1) }]);
        set(3, doc! { "n": 3 });
        assert_eq!(steps(), [Moved { from: 0, to: 3, document: row(3, 3) }]);
        users.delete_one(doc! { "_id": 0 }).run().unwrap();
        assert_eq!(steps(), [Removed { position: 0 }, Added { position: 3, document: row(4, 4) }], "refilled");
        set(2, doc! { "n": 100 });
        assert_eq!(steps(), [Removed { position: 1 }, Added { position: 3, document: row(5, 50) }]);
        users.drop().unwrap();
        assert_eq!(steps().len(), 4);
        assert_eq!(users.find(doc! {}).skip(1).live().unwrap_err().code(), 72);
    });
}
