//! The central guarantee: a query returns the same result with every plan.
//!
//! Each random query runs on a collection without indexes, and then on one with the same documents and indexes, once
//! for each usable plan.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::{collections::HashMap, fmt};

use bson::{Bson, Document, RawDocumentBuf, doc};
use common::{
    Refusal, Store, TestDatabase, brief, check_cases, multiset,
    random::{self, Pool, RandomIndex, RandomQuery, Width},
    raw, refusal, rows,
};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use slate_core::{Collection, ExplainVerbosity, Find, ReturnDocument};
use slate_query::{collation::Collation, raw::Doc, sort::Sort};

type Documents = Collection<RawDocumentBuf>;

/// Documents, indexes and queries.
#[derive(Clone)]
struct Case {
    documents: Vec<Document>,
    indexes: Vec<RandomIndex>,
    /// The number of documents that are deleted again, so that the statistics of indexes are outdated.
    deleted: usize,
    queries: Vec<RandomQuery>,
}

/// Prints one line per item, to make failures readable.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.documents.iter().try_for_each(|document| writeln!(f, "insert {}", brief(&document.to_string())))?;
        self.indexes.iter().try_for_each(|index| writeln!(f, "{index:?}"))?;
        writeln!(f, "delete the first {}", self.deleted)?;
        self.queries.iter().try_for_each(|query| writeln!(f, "{}", brief(&format!("{query:?}"))))
    }
}

/// Returns cases with indexes of all kinds.
fn case() -> impl Strategy<Value = Case> {
    case_with(|pool| pool.indexes(3))
}

/// Returns cases whose indexes are compound wildcard indexes.
fn case_of_compound_wildcards() -> impl Strategy<Value = Case> {
    case_with(|pool| vec(pool.compound_wildcard_index(), 1..=2).boxed())
}

fn case_with(indexes: fn(&Pool) -> BoxedStrategy<Vec<RandomIndex>>) -> impl Strategy<Value = Case> {
    random::pool().prop_flat_map(move |pool| {
        let filters = if pool.width() == Width::Narrow { 5..8_u8 } else { 0..8_u8 };
        let aim = (any::<prop::sample::Index>(), filters, 0..6_u8, vec(pool.condition(), 3));
        let queries = vec((pool.query(), aim), 1..6);
        (pool.documents(20), indexes(&pool), 0..3_usize, queries).prop_map(|(documents, indexes, deleted, queries)| {
            let aimed = |(query, (which, filter, sort, conditions)): (_, (prop::sample::Index, _, _, _))| {
                aimed(query, which.get(&indexes), filter, sort, conditions)
            };
            let queries = queries.into_iter().map(aimed).collect();
            Case { documents, indexes, deleted, queries }
        })
    })
}

/// Makes some queries fit an index: its condition, bounds on its fields, its order.
fn aimed(mut query: RandomQuery, index: &RandomIndex, filter: u8, sort: u8, conditions: Vec<Bson>) -> RandomQuery {
    if filter >= 5 {
        let fields = index.aim.keys().take(usize::from(filter) - 4);
        query.filter = fields.cloned().zip(conditions).collect();
    }
    if let (Some(partial), true) = (&index.partial, filter % 2 == 1) {
        query.filter = doc! { "$and": [partial.clone(), query.filter] };
    }
    let turned = |(path, direction): (&String, &Bson)| (path.clone(), Bson::Int32(-direction.as_i32().unwrap()));
    match (&mut query.sort, sort) {
        (Some(sort), 3) => *sort = index.aim.clone(),
        (Some(sort), 4) => *sort = index.aim.iter().map(turned).collect(),
        (Some(sort), 5) => *sort = index.aim.clone().into_iter().take(1).collect(),
        (None | Some(_), _) => {}
    }
    query
}

fn fail(what: impl Into<String>) -> TestCaseError {
    TestCaseError::fail(brief(&what.into()))
}

fn id(document: &RawDocumentBuf) -> Bson {
    document.get("_id").unwrap().unwrap().try_into().unwrap()
}

/// The two collections that are compared.
struct Pair {
    plain: Documents,
    indexed: Documents,
}

impl Pair {
    fn build(database: &TestDatabase, number: u32, case: &Case) -> Self {
        let name = |kind: &str| format!("{kind}{number}");
        let (plain, indexed) = (database.collection(&name("plain")), database.collection(&name("indexed")));
        let create = |collection: &Documents, before: bool| {
            for index in case.indexes.iter().filter(|index| index.before_documents == before) {
                // An index that the documents do not allow or that exists already is skipped.
                let _ = collection.create_index(index.spec()).run();
            }
        };
        create(&indexed, true);
        let kept = database.db.transact(|tx| -> slate_core::Result<_> {
            let indexed = tx.collection::<RawDocumentBuf>(&name("indexed"));
            // A document that an index rejects is inserted into neither.
            let accepted = |document: &&Document| indexed.insert_one(&raw(document)).is_ok();
            let kept: Vec<RawDocumentBuf> = case.documents.iter().filter(accepted).map(raw).collect();
            tx.collection::<RawDocumentBuf>(&name("plain")).insert_many(&kept).run()?;
            Ok(kept)
        });
        create(&indexed, false);
        for document in kept.unwrap().iter().take(case.deleted) {
            let by_id = doc! { "_id": id(document) };
            for collection in [&plain, &indexed] {
                assert_eq!(collection.delete_one(&by_id).run().unwrap(), 1, "{by_id}");
            }
        }
        Self { plain, indexed }
    }

    fn drop(self) {
        self.plain.drop().unwrap();
        self.indexed.drop().unwrap();
    }
}

fn find(collection: &Documents, query: &RandomQuery) -> Find<RawDocumentBuf> {
    let mut find = collection.find(&query.filter);
    if let Some(sort) = &query.sort {
        find = find.sort(sort);
    }
    if query.is_collated { find.collation(random::collation()) } else { find }
}

fn sliced(find: Find<RawDocumentBuf>, query: &RandomQuery) -> Find<RawDocumentBuf> {
    let find = find.skip(query.skip);
    match query.limit {
        Some(limit) => find.limit(limit),
        None => find,
    }
}

fn sort_keys(sort: &Document, query: &RandomQuery, rows: &[RawDocumentBuf]) -> Vec<Vec<u8>> {
    let sort = raw(sort);
    let collation = raw(&random::collation());
    let collation = query.is_collated.then(|| Collation::parse(Doc::from(&collation)).unwrap().unwrap());
    let sort = Sort::parse(Doc::from(&sort)).unwrap().with_collation(collation);
    let key = |row: &RawDocumentBuf| {
        let mut key = Vec::new();
        sort.key(Doc::from(row), &mut key).unwrap();
        key
    };
    rows.iter().map(key).collect()
}

/// The expected result of a query, from the collection without indexes.
struct Answer {
    /// All matching documents, in the requested order.
    rows: Vec<RawDocumentBuf>,
    query: RandomQuery,
}

impl Answer {
    /// Checks that rows are a correct result without skip and limit.
    fn check_whole(&self, rows: &[RawDocumentBuf]) -> Result<(), String> {
        if multiset(rows) != multiset(&self.rows) {
            return Err(format!("rows are {rows:?}, expected {:?}", self.rows));
        }
        self.check_order(rows, &self.rows)
    }

    /// Checks that rows are a correct result with skip and limit.
    fn check_sliced(&self, rows: &[RawDocumentBuf]) -> Result<(), String> {
        let skip = usize::try_from(self.query.skip).unwrap();
        let limit = self.query.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap());
        let right: Vec<RawDocumentBuf> = self.rows.iter().skip(skip).take(limit).cloned().collect();
        if right.len() != rows.len() {
            return Err(format!("{} rows, expected {}: {rows:?}", rows.len(), right.len()));
        }
        let mut left = multiset(&self.rows);
        for row in rows {
            let Ok(place) = left.binary_search(&row.as_bytes()) else {
                return Err(format!("{row:?} is not a row of the result, or appears twice"));
            };
            left.remove(place);
        }
        self.check_order(rows, &right)
    }

    fn check_order(&self, rows: &[RawDocumentBuf], right: &[RawDocumentBuf]) -> Result<(), String> {
        match &self.query.sort {
            Some(sort) if sort_keys(sort, &self.query, rows) != sort_keys(sort, &self.query, right) => {
                Err(format!("the order is {rows:?}, expected {right:?}"))
            }
            _ => Ok(()),
        }
    }
}

/// Checks every plan for every query.
fn check(database: &TestDatabase, number: u32, case: &Case) -> Result<(), TestCaseError> {
    let pair = Pair::build(database, number, case);
    let checked = case.queries.iter().try_for_each(|query| {
        check_query(database, &pair, query).map_err(|error| match error {
            TestCaseError::Fail(why) => fail(format!("{query:?}: {why}")),
            reject @ TestCaseError::Reject(_) => reject,
        })
    });
    pair.drop();
    checked
}

fn check_query(database: &TestDatabase, pair: &Pair, query: &RandomQuery) -> Result<(), TestCaseError> {
    let right = match rows(find(&pair.plain, query)) {
        Ok(rows) => rows,
        Err(refused) => return check_refused(pair, query, &refused),
    };
    let answer = Answer { rows: right, query: query.clone() };
    let candidates = find(&pair.indexed, query)
        .explain(ExplainVerbosity::QueryPlanner)
        .map_err(|error| fail(error.to_string()))?
        .candidates();
    let planned = |find: Find<RawDocumentBuf>, plan: Option<usize>| match plan {
        Some(plan) => find.force(plan),
        None => find,
    };
    for plan in std::iter::once(None).chain((0..candidates).map(Some)) {
        let find = || planned(find(&pair.indexed, query), plan);
        let drawn = |what: &str, why: String| {
            let explained = find()
                .explain(ExplainVerbosity::QueryPlanner)
                .map_or_else(|error| error.to_string(), |plan| plan.to_string());
            fail(format!("{what} with plan {plan:?}\n{explained}\n: {why}"))
        };
        let whole = rows(find()).map_err(|error| drawn("find", format!("{error:?}")))?;
        answer.check_whole(&whole).map_err(|why| drawn("find", why))?;
        let part = rows(sliced(find(), query)).map_err(|error| drawn("find sliced", format!("{error:?}")))?;
        answer.check_sliced(&part).map_err(|why| drawn("find sliced", why))?;
        let counted = sliced(find(), query).count().run().map_err(|error| drawn("count", error.to_string()))?;
        if counted != u64::try_from(part.len()).unwrap() {
            return Err(drawn("count", format!("{counted} instead of {}", part.len())));
        }
        if let Some(projection) = &query.projection {
            check_projection(pair, query, (projection, plan), &whole, || find().projection(projection))
                .map_err(|why| drawn("project", why))?;
        }
    }
    check_distinct(pair, query)?;
    check_targets(database, pair, query, candidates)
}

/// Checks that each plan fails where the scan fails. A plan that stops at a limit may not read a row that cannot be
/// sorted, and may then succeed.
fn check_refused(pair: &Pair, query: &RandomQuery, refused: &Refusal) -> Result<(), TestCaseError> {
    let explained = find(&pair.indexed, query).explain(ExplainVerbosity::QueryPlanner);
    let candidates = match explained {
        Ok(explained) => explained.candidates(),
        Err(error) if refusal(&error) == *refused => return Ok(()),
        Err(error) => return Err(fail(format!("explain fails with {error}, expected {refused:?}"))),
    };
    for plan in 0..candidates {
        let answered = rows(find(&pair.indexed, query).force(plan));
        if answered.as_ref().err() != Some(refused) {
            return Err(fail(format!("plan {plan} returns {answered:?}, expected {refused:?}")));
        }
    }
    Ok(())
}

/// Checks that a projection does not depend on indexes: the same plan returns the same rows in the same order. Without a forced
/// plan, the projection may have another one than the whole documents, because an index covers it.
fn check_projection(
    pair: &Pair,
    query: &RandomQuery,
    (projection, plan): (&Document, Option<usize>),
    whole: &[RawDocumentBuf],
    projected: impl Fn() -> Find<RawDocumentBuf>,
) -> Result<(), String> {
    let plain = rows(find(&pair.plain, query)).map_err(|error| format!("{error:?}"))?;
    let right = match rows(find(&pair.plain, query).projection(projection)) {
        Ok(shaped) => shaped,
        Err(refused) => {
            // Of several documents that cannot be projected, the first depends on the plan, and with it the code.
            return match rows(projected()) {
                Err(_) => Ok(()),
                other => Err(format!("{other:?}, expected {refused:?}")),
            };
        }
    };
    let shapes: HashMap<&[u8], &RawDocumentBuf> = plain.iter().map(|row| row.as_bytes()).zip(&right).collect();
    let right: Vec<&RawDocumentBuf> = whole.iter().map(|row| shapes[row.as_bytes()]).collect();
    let got = rows(projected()).map_err(|error| format!("{error:?}"))?;
    let is_right = match plan {
        Some(_) => got.iter().collect::<Vec<_>>() == right,
        None => multiset(&got) == multiset(&right.iter().map(|row| (*row).clone()).collect::<Vec<_>>()),
    };
    if is_right { Ok(()) } else { Err(format!("{got:?}, expected {right:?}")) }
}

fn check_distinct(pair: &Pair, query: &RandomQuery) -> Result<(), TestCaseError> {
    let right = pair.plain.find(&query.filter).distinct(&query.distinct).run().map_err(|error| refusal(&error));
    let explained =
        match pair.indexed.find(&query.filter).distinct(&query.distinct).explain(ExplainVerbosity::QueryPlanner) {
            Ok(explained) => explained,
            Err(error) if right.as_ref().err() == Some(&refusal(&error)) => return Ok(()),
            Err(error) => return Err(fail(format!("distinct fails with {error}, expected {right:?}"))),
        };
    for plan in 0..explained.candidates() {
        let got = pair.indexed.find(&query.filter).force(plan).distinct(&query.distinct).run();
        let got = got.map_err(|error| refusal(&error));
        // Compared as text because NaN is not equal to itself.
        if format!("{got:?}") != format!("{right:?}") {
            return Err(fail(format!("distinct with plan {plan}: {got:?}, expected {right:?}")));
        }
    }
    Ok(())
}

/// Checks that writes select the same documents with every plan: of several, the first in the order of `_id`.
fn check_targets(
    database: &TestDatabase,
    pair: &Pair,
    query: &RandomQuery,
    candidates: usize,
) -> Result<(), TestCaseError> {
    let mark = doc! { "$set": { "marked": true } };
    let marked = doc! { "marked": true };
    let collation = || {
        if query.is_collated {
            random::collation()
        } else {
            doc! { "locale": "simple" }
        }
    };
    let sorted = |update: slate_core::FindOneAndUpdate<RawDocumentBuf>| match &query.sort {
        Some(sort) => update.sort(sort),
        None => update,
    };
    let plans = std::iter::once(None).chain((0..candidates).map(|plan| Some((&pair.indexed, plan))));
    let mut right: Option<[String; 5]> = None;
    for plan in plans {
        let name = plan.map_or_else(|| pair.plain.name(), |(indexed, _)| indexed.name());
        // Each target is selected in a transaction that is rolled back.
        let attempt = |write: &dyn Fn(&Documents) -> slate_core::Result<String>| {
            let transaction = database.db.begin().unwrap();
            let collection = transaction.collection(name);
            let written = write(&collection);
            let left = rows(collection.find(&marked).hint(slate_core::Hint::Forward));
            transaction.rollback();
            format!("{:?} {left:?}", written.map_err(|error| refusal(&error)))
        };
        let unsorted_plan = |candidates: usize| plan.map(|(_, plan)| plan).filter(|plan| *plan < candidates);
        // A query without the sort may have fewer plans.
        let unsorted = pair
            .indexed
            .find(&query.filter)
            .collation(collation())
            .explain(ExplainVerbosity::QueryPlanner)
            .map_or(0, |explained| explained.candidates());
        let outcomes = [
            attempt(&|collection| {
                let mut update = collection.update_one(&query.filter, &mark).collation(collation());
                if let Some(plan) = unsorted_plan(unsorted) {
                    update = update.force(plan);
                }
                Ok(format!("{:?}", update.run()?))
            }),
            attempt(&|collection| {
                let mut update = collection.update_many(&query.filter, &mark).collation(collation());
                if let Some(plan) = unsorted_plan(unsorted) {
                    update = update.force(plan);
                }
                Ok(format!("{:?}", update.run()?))
            }),
            attempt(&|collection| {
                let mut delete = collection.delete_one(&query.filter).collation(collation());
                if let Some(plan) = unsorted_plan(unsorted) {
                    delete = delete.force(plan);
                }
                delete.run()?;
                Ok(format!("{:?}", rows(collection.find(doc! {}).hint(slate_core::Hint::Forward))))
            }),
            attempt(&|collection| {
                let mut delete = collection.delete_many(&query.filter).collation(collation());
                if let Some(plan) = unsorted_plan(unsorted) {
                    delete = delete.force(plan);
                }
                delete.run()?;
                Ok(format!("{:?}", rows(collection.find(doc! {}).hint(slate_core::Hint::Forward))))
            }),
            attempt(&|collection| {
                let mut update = sorted(collection.find_one_and_update(&query.filter, &mark)).collation(collation());
                if let Some((_, plan)) = plan {
                    update = update.force(plan);
                }
                Ok(format!("{:?}", update.return_document(ReturnDocument::Before).run()?))
            }),
        ];
        match &right {
            None => right = Some(outcomes),
            Some(right) => {
                let names = ["update_one", "update_many", "delete_one", "delete_many", "find_one_and_update"];
                for ((name, right), got) in names.iter().zip(right).zip(&outcomes) {
                    if right != got {
                        let plan = plan.map(|(_, plan)| plan);
                        return Err(fail(format!("{name} with plan {plan:?}: {got}, expected {right}")));
                    }
                }
            }
        }
    }
    Ok(())
}

fn every_plan_agrees_with_the_scan(store: Store, cases: u32, case: &impl Strategy<Value = Case>) {
    let database = store.open();
    check_cases(store, cases, case, |number, case| check(&database, number, &case));
}

#[test]
fn every_plan_by_compound_wildcards_agrees_with_the_scan_in_memory() {
    every_plan_agrees_with_the_scan(Store::Memory, 200, &case_of_compound_wildcards());
}

#[test]
fn every_plan_by_compound_wildcards_agrees_with_the_scan_on_redb() {
    every_plan_agrees_with_the_scan(Store::Redb, 50, &case_of_compound_wildcards());
}

#[cfg(feature = "rocksdb")]
#[test]
fn every_plan_by_compound_wildcards_agrees_with_the_scan_on_rocksdb() {
    every_plan_agrees_with_the_scan(Store::RocksDb, 50, &case_of_compound_wildcards());
}

#[test]
fn every_plan_agrees_with_the_scan_in_memory() {
    every_plan_agrees_with_the_scan(Store::Memory, 300, &case());
}

#[test]
fn every_plan_agrees_with_the_scan_on_redb() {
    every_plan_agrees_with_the_scan(Store::Redb, 100, &case());
}

#[cfg(feature = "rocksdb")]
#[test]
fn every_plan_agrees_with_the_scan_on_rocksdb() {
    every_plan_agrees_with_the_scan(Store::RocksDb, 100, &case());
}
