//! The process that writes.

use std::{path::Path, thread};

use bson::{Bson, Document, doc};
use slate_core::{ChangeLog, Collection, Database, ErrorKind, Index, RenameTarget, Result, Sharing, Transaction};

use super::replica::{Replica, follow_forever};

/// Threads that write.
const WRITERS: u64 = 3;

/// Writes until the process is killed. Also follows, if no other process can open the database. Ends the process with
/// exit code 3 if the database cannot be opened, a write fails, or the copy differs.
pub fn write(folder: &Path, store: &str, seed: u64) {
    let fail = |error: String| {
        eprintln!("writing failed: {error}");
        std::process::exit(3);
    };
    let result = opened(folder, store, seed).map(|db| {
        println!("writing");
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let db = &db;
                scope
                    .spawn(move || changes(db, seed ^ writer << 32).unwrap_or_else(|error| fail(format!("{error:?}"))));
            }
            if !super::has_readers(store) {
                match Replica::open(&super::copy(store, folder)) {
                    Ok(replica) => follow_forever(&db, replica).unwrap_or_else(fail),
                    Err(error) => fail(format!("{error:?}")),
                }
            }
        });
    });
    result.unwrap_or_else(|error| fail(format!("{error:?}")));
}

fn opened(folder: &Path, store: &str, seed: u64) -> Result<Database> {
    let sharing = if super::has_readers(store) { Sharing::WithReaders } else { Sharing::Exclusive };
    // After a kill, the first process that opens the file repairs it and keeps others out meanwhile, so opening waits.
    let builder = Database::builder(&super::source(store, folder)).sharing(sharing);
    let db = builder.open_timeout(super::OPEN_TIMEOUT).open()?;
    // Some logs are so short that a follower falls behind.
    let bytes = if seed.is_multiple_of(3) { 1 << 15 } else { 1 << 28 };
    db.enable_changes(ChangeLog::new().bytes(bytes))?;
    if db.collection::<Document>("first").find_by_id(1)?.is_none() {
        db.collection("first").insert_one(&doc! { "_id": 1, "time": db.last_time() })?;
    }
    Ok(db)
}

/// Makes random changes until one fails unexpectedly.
fn changes(db: &Database, seed: u64) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(seed);
    loop {
        let made = match random.u8(..20) {
            0 => {
                let seed = random.u64(..);
                db.transact(|tx: &Transaction| {
                    let mut random = fastrand::Rng::with_seed(seed);
                    (0..5).try_for_each(|_| change(&mut random, |name| tx.collection(name)))
                })
            }
            1 if random.u8(..10) == 0 => db.collection::<Document>(name(&mut random)).drop().map(drop),
            2 if random.u8(..10) == 0 => {
                let from = db.collection::<Document>(name(&mut random));
                from.rename(name(&mut random), RenameTarget::DropExisting).map(drop)
            }
            3 if random.u8(..10) == 0 => {
                let indexed = db.collection::<Document>(name(&mut random));
                indexed.create_index(Index::on(doc! { "n": 1 })).run().map(drop)
            }
            4 => {
                let stages = [doc! { "$set": { "copied": true } }, doc! { "$merge": "c" }];
                db.collection::<Document>("a").aggregate(stages).run().map(drop)
            }
            _ => change(&mut random, |name| db.collection(name)),
        };
        match made {
            Err(error) if error.is_retryable() || is_expected(&error) => {}
            made => made?,
        }
    }
}

/// Whether random changes can cause an error of this kind, for example with a name or an `_id` that is missing or
/// taken.
fn is_expected(error: &slate_core::Error) -> bool {
    matches!(error.kind(), ErrorKind::DuplicateKey | ErrorKind::NotFound | ErrorKind::Invalid | ErrorKind::Conflict)
}

fn name(random: &mut fastrand::Rng) -> &'static str {
    random.choice(["a", "b", "c"]).unwrap_or("a")
}

fn change(random: &mut fastrand::Rng, collection: impl Fn(&str) -> Collection<Document>) -> Result<()> {
    let collection = collection(name(random));
    let id = random.i32(..300);
    let value = || -> Bson { vec![1, 2, 3].into() };
    let filter = doc! { "_id": { "$gte": id, "$lt": id + random.i32(1..4) } };
    let update = match random.u8(..8) {
        0 => doc! { "$set": { "n": random.i32(..1_000), "sub.x": "x".repeat(random.usize(..50)) } },
        1 => doc! { "$push": { "list": random.i32(..10) }, "$inc": { "n": 1 } },
        2 => doc! { "$pop": { "list": 1 } },
        3 => doc! { "$unset": { "sub": 1 }, "$set": { "list": value() } },
        4 => doc! { "$pull": { "list": { "$gt": 5 } }, "$set": { "last": bson::DateTime::now() } },
        5 => {
            let mut replacement = doc! { "n": random.i32(..1_000), "list": [] };
            replacement.insert("pad", "y".repeat(random.usize(..400)));
            return collection.replace_one(doc! { "_id": id }, &replacement).upsert().run().map(drop);
        }
        6 => {
            let documents: Vec<Document> =
                (id..id + 3).map(|id| doc! { "_id": id, "n": id, "list": value(), "sub": { "x": "" } }).collect();
            return collection.upsert_many(&documents).map(drop);
        }
        _ => return collection.delete_many(filter).run().map(drop),
    };
    collection.update_many(filter, update).run().map(drop)
}
