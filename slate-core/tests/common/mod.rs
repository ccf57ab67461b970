//! Shared by the tests: databases on every store, random documents and queries, comparisons.

#![allow(unreachable_pub, missing_docs, reason = "a test's own module")]
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "a test fails by panicking"
)]

pub mod operands;
pub mod random;
pub mod random_pipelines;
pub mod random_values;
pub mod records;

use std::path::Path;

use bson::{Bson, Document, RawDocumentBuf};
use slate_core::{Collection, Database, Durability, Error, ExplainVerbosity, Find};

/// The stores that every test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    Memory,
    Redb,
    #[cfg(feature = "rocksdb")]
    RocksDb,
}

/// Every store that is built in.
#[cfg(not(feature = "rocksdb"))]
pub const STORES: [Store; 2] = [Store::Memory, Store::Redb];
/// Every store that is built in.
#[cfg(feature = "rocksdb")]
pub const STORES: [Store; 3] = [Store::Memory, Store::Redb, Store::RocksDb];

/// A test database, and its folder if the store is persistent.
pub struct TestDatabase {
    pub db: Database,
    pub store: Store,
    folder: tempfile::TempDir,
}

impl Store {
    /// Opens an empty database. Its commits do not wait for the device.
    pub fn open(self) -> TestDatabase {
        let folder = tempfile::tempdir().unwrap();
        let url = self.url_in(folder.path());
        let db = Database::builder(&url).durability(Durability::Deferred).open().unwrap();
        TestDatabase { db, store: self, folder }
    }

    /// Returns whether commits survive closing and reopening.
    pub fn is_persistent(self) -> bool {
        self != Self::Memory
    }

    /// Returns the URL of a database in that folder.
    pub fn url_in(self, folder: &Path) -> String {
        let path = folder.join("db.slate");
        match self {
            Self::Memory => "memory:".into(),
            Self::Redb => on_cluster(folder).unwrap_or_else(|| format!("redb:{}", path.display())),
            #[cfg(feature = "rocksdb")]
            Self::RocksDb => format!("rocksdb:{}", path.display()),
        }
    }
}

/// Returns the URL of a database in the cluster that `SLATE_TESTS_ON_TIKV` names, which then takes the place of redb.
fn on_cluster(folder: &Path) -> Option<String> {
    let driver = std::env::var("SLATE_TESTS_ON_TIKV").ok()?;
    Some(format!("tikv://{driver}/{}", folder.file_name()?.to_str()?))
}

impl TestDatabase {
    pub fn url(&self) -> String {
        self.store.url_in(self.folder.path())
    }

    /// Closes and reopens a persistent database.
    pub fn reopen(self) -> Self {
        if !self.store.is_persistent() {
            return self;
        }
        let Self { db, store, folder } = self;
        drop(db);
        let db = Database::builder(&store.url_in(folder.path())).durability(Durability::Deferred).open().unwrap();
        Self { db, store, folder }
    }

    /// Returns a database that was opened from a backup of this one, or a copy on a cluster, which has a tool of its own for that.
    pub fn restored(&self) -> Self {
        if self.db.store() == "tikv" {
            return self.copied();
        }
        let folder = tempfile::tempdir().unwrap();
        let (scheme, path) = (self.db.store(), folder.path().join("db.slate"));
        self.db.backup(&path).unwrap();
        let db = Database::builder(&format!("{scheme}:{}", path.display())).durability(Durability::Deferred);
        Self { db: db.open().unwrap(), store: self.store, folder }
    }

    /// Returns a copy of this database.
    pub fn copied(&self) -> Self {
        let copy = self.store.open();
        self.db.copy_to(&copy.db).run().unwrap();
        copy
    }

    /// Returns the database, and the folder that must outlive it.
    pub fn into_parts(self) -> (Database, tempfile::TempDir) {
        (self.db, self.folder)
    }

    pub fn collection(&self, name: &str) -> Collection<RawDocumentBuf> {
        self.db.collection(name)
    }
}

/// Runs `work` on another thread: one that has a transaction open may not write outside of it.
pub fn elsewhere<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// Runs a test on every store.
pub fn on_every_store(test: impl Fn(TestDatabase)) {
    STORES.into_iter().for_each(|store| test(store.open()));
}

pub fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}

/// The parts of an error on which all plans and stores must agree.
pub type Refusal = (i32, String);

pub fn refusal(error: &Error) -> Refusal {
    (error.code(), error.to_string())
}

/// Returns all rows in their order, or the error.
pub fn rows(find: Find<RawDocumentBuf>) -> Result<Vec<RawDocumentBuf>, Refusal> {
    find.run().and_then(Iterator::collect).map_err(|error| refusal(&error))
}

/// Returns the rows sorted by their bytes.
pub fn multiset(rows: &[RawDocumentBuf]) -> Vec<&[u8]> {
    let mut bytes: Vec<&[u8]> = rows.iter().map(|row| row.as_bytes()).collect();
    bytes.sort_unstable();
    bytes
}

/// Returns the `_id`s of rows.
pub fn ids(rows: &[RawDocumentBuf]) -> Vec<Bson> {
    rows.iter().map(|row| row.get("_id").unwrap().unwrap().try_into().unwrap()).collect()
}

/// Returns the rows of each usable plan, with the drawn plan.
pub fn each_plan(find: &Find<RawDocumentBuf>) -> Vec<(String, Vec<RawDocumentBuf>)> {
    let candidates = find.clone().explain(ExplainVerbosity::QueryPlanner).unwrap().candidates();
    let forced = |plan| {
        let find = find.clone().force(plan);
        let drawn = find.clone().explain(ExplainVerbosity::QueryPlanner).unwrap().to_string();
        let found = rows(find).unwrap_or_else(|refused| panic!("{drawn}: {refused:?}"));
        (drawn, found)
    };
    (0..candidates).map(forced).collect()
}

/// Checks that each plan, forced or chosen, finds the documents with these `_id`s, in any order.
#[track_caller]
pub fn finds(find: &Find<RawDocumentBuf>, wanted: impl IntoIterator<Item = impl Into<Bson>>) {
    let sorted = |ids: Vec<Bson>| {
        let mut shown: Vec<String> = ids.iter().map(|id| format!("{id:?}")).collect();
        shown.sort();
        shown
    };
    let wanted = sorted(wanted.into_iter().map(Into::into).collect());
    let chosen = ("the chosen plan".to_owned(), rows(find.clone()).unwrap());
    for (drawn, found) in std::iter::once(chosen).chain(each_plan(find)) {
        assert_eq!(sorted(ids(&found)), wanted, "{drawn}");
    }
}

/// Checks that each plan, forced or chosen, finds the documents with these `_id`s, in this order.
#[track_caller]
pub fn finds_in_order(find: &Find<RawDocumentBuf>, wanted: impl IntoIterator<Item = impl Into<Bson>>) {
    let wanted: Vec<Bson> = wanted.into_iter().map(Into::into).collect();
    let chosen = ("the chosen plan".to_owned(), rows(find.clone()).unwrap());
    for (drawn, found) in std::iter::once(chosen).chain(each_plan(find)) {
        assert_eq!(ids(&found), wanted, "{drawn}");
    }
}

/// Abbreviates runs of one character, or of one pair of characters, by their length, to make failures with long texts
/// readable.
pub fn brief(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut output = String::new();
    let mut at = 0;
    while at < characters.len() {
        let repeats = |unit: usize| {
            let units = characters[at..].chunks_exact(unit);
            units.take_while(|chunk| **chunk == characters[at..at + unit]).count()
        };
        let unit = if repeats(1) > 40 { 1 } else { 2 };
        let count = if at + unit <= characters.len() { repeats(unit) } else { 0 };
        if count > 40 {
            output.extend(&characters[at..at + unit]);
            output.push_str(&format!("<{count} times>"));
            at += count * unit;
        } else {
            output.push(characters[at]);
            at += 1;
        }
    }
    output
}

/// Returns a runner for a property. Its number of cases is `SLATE_CASES`, or this default.
pub fn runner(default_cases: u32) -> proptest::test_runner::TestRunner {
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let cases = std::env::var("SLATE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default_cases);
    let seed: u64 = std::env::var("SLATE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases, failure_persistence: None, max_shrink_time: 30_000, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// Checks the cases of a property. `check` gets the number of the case, for the names of its collections; a failure names `stores`.
pub fn check_cases<C: std::fmt::Debug>(
    stores: impl std::fmt::Debug,
    default_cases: u32,
    cases: &impl proptest::strategy::Strategy<Value = C>,
    check: impl Fn(u32, C) -> Result<(), proptest::test_runner::TestCaseError>,
) {
    let number = std::cell::Cell::new(0);
    let checked = runner(default_cases).run(cases, |case| {
        number.set(number.get() + 1);
        check(number.get(), case)
    });
    if let Err(error) = checked {
        panic!("{stores:?}: {error}");
    }
}
