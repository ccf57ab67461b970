//! A view is read like its pipeline: find, count, distinct and aggregate over it return what the pipeline returns when it is
//! written out before the request, with every plan, without indexes and with each of them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use bson::{Bson, Document, RawDocumentBuf, doc};
use common::{
    STORES, TestDatabase, brief, check_cases, multiset,
    random::{self, RandomIndex, RandomQuery},
    random_pipelines::{self, OTHER},
    raw,
};
use proptest::{collection::vec, prelude::*, test_runner::TestCaseError};
use slate_core::{Aggregate, Collection, CollectionOptions, Count, ExplainVerbosity, Find, Index, Result, View};
use slate_query::{
    collation::Collation,
    distinct, key,
    raw::{Doc, Value, with_value},
    sort::Sort,
};

type Documents = Collection<RawDocumentBuf>;

#[derive(Clone, Debug)]
struct Case {
    documents: Vec<Document>,
    indexes: Vec<RandomIndex>,
    /// The documents and indexes of the collection that lookups read.
    others: (Vec<Document>, Vec<RandomIndex>),
    /// The stages of the view, of which the first `below` are those of a view that it reads.
    stages: Vec<Document>,
    below: usize,
    is_collated: bool,
    queries: Vec<(RandomQuery, Vec<Document>)>,
}

fn case() -> impl Strategy<Value = Case> {
    random::pool().prop_flat_map(|pool| {
        let others = (pool.documents(10), pool.indexes(1));
        let stages = random_pipelines::pipeline(&pool);
        let queries = vec((pool.query(), random_pipelines::stages(&pool)), 1..4);
        let view = (stages, any::<prop::sample::Index>(), prop::bool::weighted(0.15));
        (pool.documents(16), pool.indexes(3), others, view, queries).prop_map(
            |(documents, indexes, others, (stages, below, is_collated), queries)| {
                let below = below.index(stages.len() + 1);
                Case { documents, indexes, others, stages, below, is_collated, queries }
            },
        )
    })
}

fn fail(what: impl Into<String>) -> TestCaseError {
    TestCaseError::fail(brief(&what.into()))
}

/// A request over the view, with any of its plans.
trait Planned: Clone {
    fn candidates(&self) -> usize;
    fn forced(self, plan: usize) -> Self;
}

macro_rules! planned {
    ($($request:ty),*) => {
        $(impl Planned for $request {
            fn candidates(&self) -> usize {
                self.clone().explain(ExplainVerbosity::QueryPlanner).unwrap().candidates()
            }

            fn forced(self, plan: usize) -> Self {
                self.force(plan)
            }
        })*
    };
}

planned!(Find<RawDocumentBuf>, Aggregate<Document>, Count);

/// Runs a request with the chosen plan and with each other, and checks each result.
fn each_plan<P: Planned, R>(
    request: &P,
    run: impl Fn(P) -> Result<R>,
    check: impl Fn(R) -> std::result::Result<(), String>,
) -> std::result::Result<(), String> {
    let forced = (0..request.candidates()).map(|plan| (format!("plan {plan}"), request.clone().forced(plan)));
    for (what, request) in std::iter::once(("the chosen plan".to_owned(), request.clone())).chain(forced) {
        let result = run(request).map_err(|error| format!("{what}: {error}"))?;
        check(result).map_err(|fault| format!("{what}: {fault}"))?;
    }
    Ok(())
}

fn documents(aggregate: Aggregate<Document>) -> Result<Vec<RawDocumentBuf>> {
    aggregate.with_type().run()?.collect()
}

fn all(find: Find<RawDocumentBuf>) -> Result<Vec<RawDocumentBuf>> {
    find.run()?.collect()
}

/// The collection, the view, and how both are read.
struct Subject {
    collection: Documents,
    view: Documents,
    stages: Vec<Document>,
    collation: Option<Document>,
}

impl Subject {
    /// Returns the documents of the view's pipeline with these stages after it. `None` if it fails as written: with
    /// another plan it may succeed.
    fn written_out(&self, stages: &[Document]) -> Option<Vec<RawDocumentBuf>> {
        let stages: Vec<Document> = self.stages.iter().chain(stages).cloned().collect();
        let aggregate = self.collection.aggregate(&stages).unoptimized();
        let aggregate = match &self.collation {
            Some(collation) => aggregate.collation(collation),
            None => aggregate,
        };
        documents(aggregate).ok()
    }

    fn collator(&self) -> Option<Collation> {
        self.collation.as_ref().and_then(|collation| Collation::parse(Doc::from(&raw(collation))).unwrap())
    }

    fn check(&self, query: &RandomQuery, stages: &[Document]) -> std::result::Result<(), String> {
        if let Some(right) = self.written_out(stages) {
            let same = |found: Vec<RawDocumentBuf>| same(&found, &right);
            each_plan(&self.view.aggregate(stages), documents, same)
                .map_err(|fault| format!("aggregate {stages:?}, {fault}"))?;
        }
        let filter = doc! { "$match": query.filter.clone() };
        let Some(rows) = self.written_out(std::slice::from_ref(&filter)) else { return Ok(()) };
        self.check_rows(query, &rows).map_err(|fault| format!("find {fault}"))?;
        if let Some(projection) = query.projection.as_ref().filter(|projection| !projection.is_empty())
            && let Some(right) = self.written_out(&[filter, doc! { "$project": projection.clone() }])
        {
            let find = self.view.find(&query.filter).projection(projection);
            each_plan(&find, all, |found| same(&found, &right)).map_err(|fault| format!("projected find {fault}"))?;
        }
        let window = window(query, &rows);
        let count = self.view.count_documents(&query.filter).skip(query.skip);
        let count = query.limit.map_or(count.clone(), |limit| count.limit(limit));
        let counts = |counted: u64| match usize::try_from(counted) == Ok(window.len()) {
            true => Ok(()),
            false => Err(format!("{counted}, expected {}", window.len())),
        };
        each_plan(&count, Count::run, counts).map_err(|fault| format!("count {fault}"))?;
        self.check_distinct(query, &rows).map_err(|fault| format!("distinct {}: {fault}", query.distinct))
    }

    fn check_rows(&self, query: &RandomQuery, rows: &[RawDocumentBuf]) -> std::result::Result<(), String> {
        let sort = query.sort.as_ref().filter(|sort| !sort.is_empty());
        let find = self.view.find(&query.filter);
        let find = sort.map_or(find.clone(), |sort| find.sort(sort));
        let sort = sort.map(|sort| Sort::parse(Doc::from(&raw(sort))).unwrap().with_collation(self.collator()));
        let keys = |rows: &[RawDocumentBuf]| -> Vec<Vec<u8>> {
            let key = |row: &RawDocumentBuf| {
                let mut key = Vec::new();
                if let Some(sort) = &sort {
                    // A row whose sort fields cannot be ordered fails the find as well.
                    let _ = sort.key(Doc::from(row), &mut key);
                }
                key
            };
            rows.iter().map(key).collect()
        };
        let mut right = keys(rows);
        right.sort();
        let has_keys =
            rows.iter().all(|row| sort.as_ref().is_none_or(|sort| sort.key(Doc::from(row), &mut Vec::new()).is_ok()));
        if !has_keys {
            return Ok(());
        }
        each_plan(&find, all, |found| {
            same(&found, rows)?;
            if keys(&found) == right { Ok(()) } else { Err(format!("the order is {found:?}")) }
        })?;
        let find = find.skip(query.skip);
        let find = query.limit.map_or(find.clone(), |limit| find.limit(limit));
        let right = window(query, &right);
        each_plan(&find, all, |found| {
            let mut left = multiset(rows);
            for row in &found {
                let place = left.iter().position(|row_of_all| *row_of_all == row.as_bytes());
                left.remove(place.ok_or_else(|| format!("{row:?} is not a row of the view, or appears twice"))?);
            }
            if keys(&found) == right { Ok(()) } else { Err(format!("the window is {found:?}")) }
        })
    }

    fn check_distinct(&self, query: &RandomQuery, rows: &[RawDocumentBuf]) -> std::result::Result<(), String> {
        // In a view a number is the name of a field, in a collection also a position.
        if self.collation.is_some() || query.distinct.contains('0') || query.distinct.contains('1') {
            return Ok(());
        }
        let path = distinct::parse(&query.distinct).unwrap();
        let encoded = |value: Value<'_>| {
            let mut bytes = Vec::new();
            key::encode(value, &mut bytes);
            bytes
        };
        let mut right: Vec<Vec<u8>> = Vec::new();
        for row in rows {
            distinct::values(&path, Doc::from(row), &mut |value| right.push(encoded(value)));
        }
        right.sort();
        right.dedup();
        let same = |found: Vec<Bson>| {
            let keys: Vec<Vec<u8>> = found.iter().map(|value| with_value(value, encoded)).collect();
            if keys == right { Ok(()) } else { Err(format!("{found:?} of {rows:?}")) }
        };
        each_plan(&self.view.find(&query.filter), |find| find.distinct(&query.distinct).run(), same)
    }
}

fn same(found: &[RawDocumentBuf], right: &[RawDocumentBuf]) -> std::result::Result<(), String> {
    if multiset(found) == multiset(right) { Ok(()) } else { Err(format!("{found:?}, expected {right:?}")) }
}

/// Returns the part of the rows that the query's skip and limit leave.
fn window<'r, R>(query: &RandomQuery, rows: &'r [R]) -> &'r [R] {
    let skip = usize::try_from(query.skip).unwrap().min(rows.len());
    let limit = query.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap());
    &rows[skip..rows.len().min(skip.saturating_add(limit))]
}

fn check(database: &TestDatabase, number: u32, case: &Case) -> std::result::Result<(), TestCaseError> {
    let fill = |name: &str, documents: &[Document]| {
        let collection: Documents = database.collection(name);
        collection.drop().unwrap();
        for document in documents {
            // A document that cannot be stored is left out.
            let _ = collection.insert_one(&raw(document));
        }
        collection
    };
    let (collection, other) = (fill(&format!("c{number}"), &case.documents), fill(OTHER, &case.others.0));
    let collation = case.is_collated.then(random::collation);
    let create = |name: String, on: String, stages: &[Document]| {
        let view: Documents = database.collection(&name);
        let mut options = CollectionOptions::new().view(&View::new(&on, stages));
        if let Some(collation) = &collation {
            options = options.collation(collation);
        }
        view.create_with(&options).map(|()| view)
    };
    let (first, rest) = case.stages.split_at(case.below);
    let views = create(format!("a{number}"), format!("c{number}"), first)
        .and_then(|inner| Ok((inner, create(format!("b{number}"), format!("a{number}"), rest)?)));
    // Stages that are not valid make no view.
    let Ok((inner, view)) = views else { return Ok(()) };
    let subject = Subject { collection, view, stages: case.stages.clone(), collation };
    let each = |what: &str| {
        let mut queries = case.queries.iter();
        queries.try_for_each(|(query, stages)| {
            subject.check(query, stages).map_err(|fault| fail(format!("{what}: {query:?}: {fault}")))
        })
    };
    each("without indexes")?;
    let index = |collection: &Documents, indexes: &[RandomIndex]| {
        // An index that the documents do not allow is skipped.
        let specs = indexes.iter().map(RandomIndex::spec);
        specs.for_each(|spec: Index| drop(collection.create_index(spec).run()));
    };
    index(&subject.collection, &case.indexes);
    index(&other, &case.others.1);
    each("with indexes")?;
    for collection in [subject.view, inner, subject.collection] {
        collection.drop().unwrap();
    }
    Ok(())
}

#[test]
fn a_view_returns_what_its_pipeline_returns() {
    for store in STORES {
        let database = store.open();
        check_cases(store, 48, &case(), |number, case| check(&database, number, &case));
    }
}
