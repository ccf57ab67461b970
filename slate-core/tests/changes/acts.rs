//! Random changes of collections, by every way to make one.

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{Collection, Database, RenameTarget, Result, ReturnDocument, TransactionOptions, WriteOperation};

/// The collections that are changed.
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

/// A small generator of random numbers (splitmix64).
pub(crate) struct Random(pub(crate) u64);

/// A random update, and what it needs besides.
struct RandomUpdate {
    modifications: Modifications,
    filter: Document,
    array_filters: Vec<Document>,
}

#[derive(Clone)]
enum Modifications {
    Operators(Document),
    Pipeline(Vec<Document>),
}

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    fn name(&mut self) -> &'static str {
        self.pick::<&'static str>(&NAMES)
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

    fn document(&mut self, depth: u32) -> RawDocumentBuf {
        let mut document = doc! { "_id": self.small() };
        document.extend(self.fields(depth));
        raw(&document)
    }

    fn update(&mut self) -> RandomUpdate {
        const PATHS: [&str; 8] = ["a", "b", "a.b", "b.c", "a.0", "d.1.a", "e", "c.c"];
        let path = *self.pick(&PATHS);
        let value = self.value(2);
        let (mut filter, mut array_filters) = (doc! { "_id": { "$gte": self.small() } }, Vec::new());
        let operators = match self.below(26) {
            0 => doc! { "$set": { path: value } },
            1 => doc! { "$unset": { path: 1 } },
            2 => doc! { "$push": { path: { "$each": [value, 1], "$slice": 4 } } },
            3 => doc! { "$push": { path: { "$each": [value, 3], "$position": 1, "$sort": -1 } } },
            4 => doc! { "$push": { path: value } },
            5 => doc! { "$pop": { path: if self.below(2) == 0 { 1 } else { -1 } } },
            6 => doc! { "$pull": { path: self.small() } },
            7 => doc! { "$pull": { path: { "$in": [self.value(1), value] } } },
            8 => doc! { "$pullAll": { path: [value, self.small()] } },
            9 => doc! { "$addToSet": { path: { "$each": [value, self.small()] } } },
            10 => doc! { "$inc": { path: self.small() } },
            11 => doc! { "$mul": { path: 1.5 } },
            12 => doc! { "$bit": { path: { "xor": self.small() } } },
            13 => doc! { "$min": { path: value } },
            14 => doc! { "$max": { path: value } },
            15 => doc! { "$currentDate": { path: { "$type": "timestamp" } } },
            16 => doc! { "$rename": { "a": "z", "z2": "a" } },
            17 => doc! { "$set": { "e": 1 }, "$setOnInsert": { path: value }, "$unset": { "b.a": 1, "a.1": 1 } },
            18 => doc! { "$set": { format!("{path}.$[]"): value } },
            19 => {
                array_filters.push(doc! { "x": { "$gte": self.small() } });
                doc! { "$set": { "a.$[x]": value } }
            }
            20 => {
                filter.insert("a", self.small());
                doc! { "$set": { "a.$": value } }
            }
            21 => {
                let stages = vec![doc! { "$set": { "a": value, "z": "$b" } }, doc! { "$unset": "c" }];
                return RandomUpdate { modifications: Modifications::Pipeline(stages), filter, array_filters };
            }
            22 => {
                let whole = doc! { "$mergeObjects": [self.fields(2), { "_id": "$_id" }] };
                let stages = vec![doc! { "$replaceWith": whole }];
                return RandomUpdate { modifications: Modifications::Pipeline(stages), filter, array_filters };
            }
            23 => {
                let reversed = doc! { "$reverseArray": { "$ifNull": ["$d", []] } };
                let stages = vec![doc! { "$set": { "b": reversed } }, doc! { "$project": { "d": 0 } }];
                return RandomUpdate { modifications: Modifications::Pipeline(stages), filter, array_filters };
            }
            24 => doc! { "$set": { "a": value, "b": self.value(2), "c.d": self.small() }, "$unset": { "e": 1 } },
            _ => doc! { "$push": { "d": { "a": value } }, "$inc": { "n": 1 } },
        };
        RandomUpdate { modifications: Modifications::Operators(operators), filter, array_filters }
    }

    fn operation(&mut self) -> WriteOperation {
        let id = doc! { "_id": self.small() };
        match self.below(6) {
            0 => WriteOperation::insert_one(self.document(2)),
            1 => WriteOperation::replace_one(id, raw(&self.fields(2))).upsert(),
            2 => WriteOperation::delete_one(id),
            3 => WriteOperation::delete_many(doc! { "a": self.value(0) }),
            _ => {
                let RandomUpdate { modifications, filter, array_filters } = self.update();
                let operation = match modifications {
                    Modifications::Operators(operators) => WriteOperation::update_many(filter, operators),
                    Modifications::Pipeline(stages) => WriteOperation::update_one(filter, stages),
                };
                if array_filters.is_empty() { operation } else { operation.array_filters(array_filters) }
            }
        }
    }
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

/// Makes a random change of documents. It may fail: the events then are those of what was done.
pub(crate) fn act(random: &mut Random, collection: &Collection<RawDocumentBuf>) -> Result<()> {
    let id = doc! { "_id": random.small() };
    match random.below(16) {
        0 | 1 => {
            let documents = [random.document(3), random.document(1), random.document(3)];
            let ordered = random.below(2) == 0;
            collection.insert_many(&documents).ordered(ordered).run().map(drop)
        }
        2 => collection.delete_many(doc! { "_id": { "$in": [random.small(), random.small()] } }).run().map(drop),
        3 => collection.replace_one(id, &raw(&random.fields(3))).upsert().run().map(drop),
        4 => {
            let document = random.document(2);
            let merged = raw(&doc! { "_id": document.get_i32("_id").unwrap(), "m": random.small() });
            collection.merge_many([document, merged]).map(drop)
        }
        5 => collection.upsert_many(&[random.document(2), random.document(2), random.document(2)]).map(drop),
        6 => {
            let operations: Vec<WriteOperation> = (0..4).map(|_| random.operation()).collect();
            collection.bulk_write(operations).ordered(random.below(2) == 0).run().map(drop)
        }
        7 => match random.below(3) {
            0 => collection.find_one_and_delete(id).run().map(drop),
            1 => collection.find_one_and_replace(id, &raw(&random.fields(2))).run().map(drop),
            _ => {
                let update = doc! { "$set": { "f": random.value(2) } };
                let changed = collection.find_one_and_update(id, update).upsert();
                changed.return_document(ReturnDocument::After).run().map(drop)
            }
        },
        8 if random.below(2) == 0 => {
            let some = doc! { "$match": { "_id": { "$gte": random.small() } } };
            let last = match random.below(3) {
                0 => doc! { "$out": random.name() },
                1 => doc! { "$merge": { "into": random.name(), "whenMatched": "replace" } },
                _ => {
                    let stages = [doc! { "$set": { "a": "$$new.b", "e": { "$add": [1, 1] } } }];
                    doc! { "$merge": { "into": random.name(), "whenMatched": stages } }
                }
            };
            collection.aggregate([some, last]).collect().map(drop)
        }
        _ => {
            let RandomUpdate { modifications, filter, array_filters } = random.update();
            let update = match (modifications, random.below(4)) {
                (Modifications::Operators(operators), 0) => collection.update_one(id, operators).upsert(),
                (Modifications::Operators(operators), _) => collection.update_many(filter, operators),
                (Modifications::Pipeline(stages), _) => collection.update_many(filter, stages),
            };
            if array_filters.is_empty() { update } else { update.array_filters(array_filters) }.run().map(drop)
        }
    }
}

/// Makes a random change of a database: of documents, several in a transaction, or of a definition.
pub(crate) fn act_on_database(random: &mut Random, db: &Database) -> Result<()> {
    let collection = db.collection(random.name());
    match random.below(40) {
        0..8 => {
            let seed = random.below(u64::MAX);
            db.transact_with(&TransactionOptions::new(), |tx| {
                let mut random = Random(seed);
                for _ in 0..4 {
                    let name = random.name();
                    let _ = act(&mut random, &tx.collection(name));
                }
                if random.below(4) == 0 { Err(slate_core::Error::custom("no")) } else { Ok(()) }
            })
        }
        8 => collection.drop().map(drop),
        9 => {
            let target = if random.below(2) == 0 { RenameTarget::MustNotExist } else { RenameTarget::DropExisting };
            collection.rename(random.name(), target).map(drop)
        }
        10 => {
            collection.create()?;
            collection.keep_images(random.below(2) == 0)
        }
        _ => act(random, &collection),
    }
}
