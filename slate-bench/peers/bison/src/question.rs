//! Questions in what bison-db can be asked: the numbers of documents whose field equals a value or lies in a range; and a
//! document by its number. The rest is done here, where it is what any program would do with these; else it is unsupported.

use std::ops::Bound;

use bison_db::{Db, DocId, Document, Value as Bison};
use slate_bench::{
    Condition, Field, Find, Order, Query, Test,
    harness::{Result, Unsupported},
};

use crate::convert;

/// Where the documents come from that a question looks at.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// All there are.
    All,
    /// Those whose field equals the value.
    Equal(&'static str, Bison),
    /// Those that have the field, and in it something else than null.
    NotNull(&'static str),
    /// All that have the field, by its order.
    Ordered(&'static str, Order),
}

/// A question for documents.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) source: Source,
    /// What is left to look at in each document.
    pub(crate) rest: Vec<Condition>,
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
}

/// A question.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    Find(Plan),
    /// How many: the numbers of documents are counted.
    Count(Source),
    Lookups(Vec<i64>),
}

/// Translates a question.
///
/// # Errors
/// What cannot be asked.
pub(crate) fn question(query: &Query) -> Result<Question> {
    match query {
        Query::Find(find) => Ok(Question::Find(plan(find)?)),
        Query::Count(conditions) => match conditions.as_slice() {
            [] => Ok(Question::Count(Source::All)),
            [condition] => Ok(Question::Count(source(condition).ok_or_else(|| no("counts of elements of arrays"))?)),
            _ => Err(no("counts by several conditions")),
        },
        Query::Distinct { .. } => Err(no("different values")),
        Query::Lookups(ids) => Ok(Question::Lookups(ids.clone())),
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
        // The range over everything gives the numbers in the order of the index.
        [(field, order)] if Field::INDEXED.contains(field) => {
            (Source::Ordered(field.name(), *order), find.filter.clone())
        }
        _ => return Err(no("sort but the order of an index over one field")),
    };
    Ok(Plan { source, rest, skip: find.skip, limit: find.limit })
}

/// The condition that narrows the most by an index, or else the first that can be asked for, is asked for.
fn by_first_condition(filter: &[Condition]) -> (Source, Vec<Condition>) {
    let indexed = filter.iter().position(|condition| Field::INDEXED.contains(&condition.field));
    let Some(place) = indexed.or((!filter.is_empty()).then_some(0)) else { return (Source::All, Vec::new()) };
    let mut rest = filter.to_vec();
    let asked = rest.remove(place);
    match source(&asked) {
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
    /// The numbers of its documents.
    ///
    /// # Errors
    /// bison-db's.
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
    /// Shows each document to `row`.
    ///
    /// # Errors
    /// bison-db's.
    pub(crate) fn each(&self, db: &Db, mut row: impl FnMut(Document)) -> Result<()> {
        let (mut skip, mut left) = (self.skip, self.limit.unwrap_or(u64::MAX));
        for id in self.source.ids(db)? {
            if left == 0 {
                break;
            }
            let document = db.get(id)?.ok_or("a document that was found is not there")?;
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
