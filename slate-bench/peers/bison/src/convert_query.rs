//! Converts queries to bison-db's operations: the numbers of documents whose field equals a value or is in a range, and
//! a document by its number. The program does the rest itself where every user of bison-db has to; other queries are
//! unsupported.

use std::ops::Bound;

use bison_db::{Db, DocId, Document, Value as Bison};
use slate_bench::{
    Condition, Field, Find, Order, Query, Test,
    harness::{Result, Unsupported},
};

use crate::convert;

/// The source of the documents that a query reads.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// All documents.
    All,
    /// Documents whose field equals a value.
    Equal(&'static str, Bison),
    /// Documents whose field exists and is not null.
    NotNull(&'static str),
    /// All documents with the field, in its order.
    Ordered(&'static str, Order),
}

/// A query that returns documents.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) source: Source,
    /// Conditions to check on each document.
    pub(crate) rest: Vec<Condition>,
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
}

/// A converted query.
#[derive(Clone, Debug)]
pub(crate) enum ConvertedQuery {
    Find(Plan),
    /// Counts the numbers of documents.
    Count(Source),
    Lookups(Vec<i64>),
}

/// Converts a query.
///
/// # Errors
/// Fails if bison-db does not support the query.
pub(crate) fn convert_query(query: &Query) -> Result<ConvertedQuery> {
    match query {
        Query::Find(find) => Ok(ConvertedQuery::Find(plan(find)?)),
        Query::Count(conditions) => match conditions.as_slice() {
            [] => Ok(ConvertedQuery::Count(Source::All)),
            [condition] => Ok(ConvertedQuery::Count(source(condition).ok_or_else(|| no("counts by array elements"))?)),
            _ => Err(no("counts with several conditions")),
        },
        Query::Distinct { .. } => Err(no("different values")),
        Query::Lookups(ids) => Ok(ConvertedQuery::Lookups(ids.clone())),
    }
}

fn no(what: &str) -> slate_bench::harness::Failure {
    Unsupported::because(format!("no {what}")).into()
}

fn plan(find: &Find) -> Result<Plan> {
    if find.projection.is_some() {
        return Err(no("projection"));
    }
    let (source, rest) = match find.sort.as_slice() {
        [] => by_first_condition(&find.filter),
        // The range over everything returns the numbers in index order.
        [(field, order)] if Field::INDEXED.contains(field) => {
            (Source::Ordered(field.name(), *order), find.filter.clone())
        }
        _ => return Err(no("sorts other than by one index")),
    };
    Ok(Plan { source, rest, skip: find.skip, limit: find.limit })
}

/// Uses the most selective indexed condition, or else the first supported one.
fn by_first_condition(filter: &[Condition]) -> (Source, Vec<Condition>) {
    let indexed = filter.iter().position(|condition| Field::INDEXED.contains(&condition.field));
    let Some(place) = indexed.or((!filter.is_empty()).then_some(0)) else { return (Source::All, Vec::new()) };
    let mut rest = filter.to_vec();
    let condition = rest.remove(place);
    match source(&condition) {
        Some(source) => (source, rest),
        None => (Source::All, filter.to_vec()),
    }
}

fn source(condition: &Condition) -> Option<Source> {
    let name = condition.field.name();
    match condition.test {
        Test::Equal(wanted) => Some(Source::Equal(name, convert::value(wanted))),
        Test::Null => Some(Source::Equal(name, Bison::Null)),
        Test::NotNull => Some(Source::NotNull(name)),
        Test::Contains(_) => None,
    }
}

impl Source {
    /// Returns bison-db's numbers of the source's documents.
    ///
    /// # Errors
    /// Fails with bison-db's errors.
    pub(crate) fn ids(&self, db: &Db) -> Result<Vec<DocId>> {
        Ok(match self {
            Self::All => db.ids().collect(),
            Self::Equal(name, value) => db.find(name, value)?,
            Self::NotNull(name) => db.range(name, (Bound::Excluded(Bison::Null), Bound::Unbounded))?,
            Self::Ordered(name, order) => {
                let mut ids = db.range(name, ..)?;
                if *order == Order::Descending {
                    ids.reverse();
                }
                ids
            }
        })
    }
}

impl Plan {
    /// Calls `row` with each document.
    ///
    /// # Errors
    /// Fails with bison-db's errors.
    pub(crate) fn each(&self, db: &Db, mut row: impl FnMut(Document)) -> Result<()> {
        let (mut skip, mut left) = (self.skip, self.limit.unwrap_or(u64::MAX));
        for id in self.source.ids(db)? {
            if left == 0 {
                break;
            }
            let document = db.get(id)?.ok_or("a found document does not exist")?;
            if !self.rest.iter().all(|condition| matches(condition, &document)) {
                continue;
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            left -= 1;
            row(document);
        }
        Ok(())
    }
}

fn matches(condition: &Condition, document: &Document) -> bool {
    let value = document.get(condition.field.name());
    match condition.test {
        Test::Equal(slate_bench::Value::Str(wanted)) => value.and_then(Bison::as_str) == Some(wanted),
        Test::Equal(wanted) => value == Some(&convert::value(wanted)),
        Test::Contains(wanted) => value
            .and_then(Bison::as_array)
            .is_some_and(|elements| elements.iter().any(|element| element.as_str() == Some(wanted))),
        Test::Null => value.is_none_or(Bison::is_null),
        Test::NotNull => value.is_some_and(|value| !value.is_null()),
    }
}
