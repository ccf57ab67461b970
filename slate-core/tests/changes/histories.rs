//! The events of random histories rebuild the collections.

use std::{
    sync::{PoisonError, RwLock},
    time::Duration,
};

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{ChangeLog, ChangeStream, Database, FullDocument, Watch};

use crate::{
    NO_STAGES,
    acts::{Random, act, act_on_database},
    common::{TestDatabase, on_every_store},
    decoded, events, logged, refused,
    replay::{Contents, assert_copied, contents, replay},
};

/// The seeds of a property: that many, or `SLATE_CASES`, beginning with `SLATE_SEED`.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let of = |name: &str, default| std::env::var(name).map_or(default, |number| number.parse().unwrap());
    let first = of("SLATE_SEED", 0);
    first..first + of("SLATE_CASES", default)
}

fn watch(db: &Database) -> Watch {
    db.watch(NO_STAGES).expanded_events().full_document(FullDocument::WhenAvailable)
}

#[test]
fn the_events_of_a_random_history_rebuild_the_collections() {
    for seed in seeds(2) {
        logged(|mut database| {
            let mut random = Random(seed);
            let mut copy = Contents::new();
            let mut token = watch(&database.db).run().unwrap().resume_token();
            for _ in 0..3 {
                for _ in 0..60 {
                    let _ = act_on_database(&mut random, &database.db);
                }
                let mut stream = watch(&database.db).resume_after(&token).run().unwrap();
                events(&mut stream).iter().for_each(|event| replay(&mut copy, event));
                assert_copied(&copy, &database.db);
                token = stream.resume_token();
                drop(stream);
                database = database.reopen();
            }
        });
    }
}

/// Follows a log that is trimmed, more slowly than it is written.
struct SlowFollower<'d> {
    db: &'d Database,
    /// Writers hold it, so that nothing is written while this has it alone.
    writing: &'d RwLock<()>,
    random: Random,
    stream: ChangeStream,
    copy: Contents,
    /// The events that were read since the copy was made.
    read: Vec<Document>,
}

/// What a follower that was resumed leaves behind.
struct Followed {
    token: RawDocumentBuf,
    copy: Contents,
    read: Vec<Document>,
}

fn token_of(event: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(event.get_document("_id").unwrap()).unwrap()
}

impl<'d> SlowFollower<'d> {
    /// Begins, or continues where another follower ended. In between nothing was written.
    fn new(db: &'d Database, writing: &'d RwLock<()>, random: Random, before: Option<Followed>) -> Self {
        match before {
            Some(Followed { token, copy, read }) => {
                let stream = watch(db).resume_after(&token).run().unwrap();
                Self { db, writing, random, stream, copy, read }
            }
            None => {
                let stream = watch(db).run().unwrap();
                Self { db, writing, random, stream, copy: contents(db), read: Vec::new() }
            }
        }
    }

    /// Copies the collections, because events were lost. Must be called while nothing is written.
    fn begin_anew(&mut self, lost: &slate_core::Error) {
        assert_eq!(lost.code(), 286, "{lost}");
        self.stream = watch(self.db).run().unwrap();
        self.copy = contents(self.db);
        self.read.clear();
    }

    /// Reads some events, or says that they were lost.
    fn read(&mut self, most: u64) -> slate_core::Result<()> {
        for _ in 0..most {
            let Some(event) = self.stream.next_within(Duration::from_millis(1))? else { break };
            let event = decoded(&event);
            replay(&mut self.copy, &event);
            self.read.push(event);
        }
        Ok(())
    }

    /// Continues by the token of the last event, or of the place after it.
    fn resume(&mut self) -> slate_core::Result<()> {
        let last = self.read.last().filter(|_| self.random.below(2) == 0).map(token_of);
        let token = last.unwrap_or_else(|| self.stream.resume_token());
        self.stream = watch(self.db).resume_after(&token).run()?;
        Ok(())
    }

    /// Limits the log to fewer bytes than it has.
    fn trim(&mut self) {
        let bytes = *self.random.pick(&[0, 4_000, 20_000, 60_000]);
        self.db.enable_changes(ChangeLog::new().bytes(bytes)).unwrap();
        self.db.expire().run().unwrap();
        self.db.enable_changes(ChangeLog::new().bytes(bytes + *self.random.pick(&[0, 50_000]))).unwrap();
    }

    /// While nothing is written: reads everything, and compares. Streams that are resumed by older tokens have all later events, or say
    /// that they were lost.
    fn compare(&mut self) {
        let alone = self.writing.write().unwrap_or_else(PoisonError::into_inner);
        let read = self.read(u64::MAX);
        if let Err(lost) = read {
            self.begin_anew(&lost);
        }
        assert_copied(&self.copy, self.db);
        for _ in 0..2.min(self.read.len()) {
            let at = usize::try_from(self.random.below(self.read.len() as u64)).unwrap();
            let token = token_of(&self.read[at]);
            // An event after which the stream of a collection would end is as any other for that of the store.
            match watch(self.db).resume_after(&token).run() {
                Ok(mut resumed) => assert_eq!(events(&mut resumed), self.read[at + 1..]),
                Err(lost) => assert_eq!(lost.code(), 286),
            }
        }
        if self.random.below(2) == 0 {
            // Who has read everything loses nothing.
            self.trim();
            self.resume().unwrap();
        }
        drop(alone);
    }

    fn step(&mut self) {
        let done = match self.random.below(24) {
            0 => return self.compare(),
            1 => {
                self.trim();
                return;
            }
            2..5 => self.resume(),
            _ => {
                let most = self.random.below(8);
                self.read(most)
            }
        };
        if let Err(lost) = done {
            let _alone = self.writing.write().unwrap_or_else(PoisonError::into_inner);
            self.begin_anew(&lost);
        }
    }

    /// Loses what it has not read.
    fn lose(&mut self) {
        let token = self.stream.resume_token();
        let collection = self.db.collection("a");
        for id in 0..2 {
            collection.insert_one(&bson::rawdoc! { "_id": 1_000 + id }).unwrap();
            collection.delete_one(doc! { "_id": 1_000 + id }).run().unwrap();
        }
        self.db.enable_changes(ChangeLog::new().bytes(0)).unwrap();
        self.db.expire().run().unwrap();
        refused(watch(self.db).resume_after(&token).run(), 286);
        let lost = self.read(u64::MAX).unwrap_err();
        self.begin_anew(&lost);
        self.db.enable_changes(ChangeLog::new().bytes(60_000)).unwrap();
    }
}

#[test]
fn a_slow_follower_of_a_trimmed_log_has_an_equal_copy_or_knows_that_it_has_lost_events() {
    for seed in seeds(1) {
        on_every_store(|mut database| {
            database.db.enable_changes(ChangeLog::new().bytes(60_000)).unwrap();
            let mut followed = None;
            for round in 0..2 {
                let random = Random(seed * 1_000 + round);
                followed = Some(follow(&database, random, followed));
                database = database.reopen();
            }
        });
    }
}

/// Follows concurrent writers until they have ended.
fn follow(database: &TestDatabase, mut random: Random, before: Option<Followed>) -> Followed {
    let (db, writing) = (&database.db, RwLock::new(()));
    let seeds = [random.below(u64::MAX), random.below(u64::MAX), random.below(u64::MAX)];
    let mut follower = SlowFollower::new(db, &writing, random, before);
    std::thread::scope(|scope| {
        let write = |seed| {
            let mut random = Random(seed);
            for _ in 0..50 {
                let _writing = writing.read().unwrap_or_else(PoisonError::into_inner);
                let _ = act_on_database(&mut random, db);
            }
        };
        let writers = seeds.map(|seed| scope.spawn(move || write(seed)));
        while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            follower.step();
        }
    });
    follower.compare();
    follower.lose();
    follower.compare();
    Followed { token: follower.stream.resume_token(), copy: follower.copy, read: follower.read }
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
