//! Computes the expected result of each query from the records by brute force, without any database.

use crate::{Answer, Find, Query, Record, Value, workload::all_match};

/// The expected result of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected<'r> {
    /// Documents.
    Rows(Rows<'r>),
    /// A number.
    Count(u64),
    /// Values, lowest first.
    Values(Vec<Value<'r>>),
    /// Documents with certain `_id`s, in the order of the lookups.
    Lookups(Vec<&'r Record>),
}

/// The expected documents of a [`Find`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows<'r> {
    /// All matching records, sorted, ties by `_id`.
    pub matching: Vec<&'r Record>,
    /// The range of `matching` that the result contains if ties are ordered by `_id`.
    pub range: std::ops::Range<usize>,
    /// Whether every correct result contains exactly these documents.
    pub determined: Determined,
}

/// Whether correct results can contain different documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Determined {
    /// No: only the order of ties can differ.
    Ids,
    /// Correct results can differ: the limit cuts through a group of ties. The number of documents and their sort keys
    /// are the same.
    Keys,
}

impl<'r> Rows<'r> {
    /// Returns the documents of one correct result.
    pub fn rows(&self) -> &[&'r Record] {
        self.matching.get(self.range.clone()).unwrap_or_default()
    }
}

impl<'r> Expected<'r> {
    /// Computes the result of a query. The records must be in the order of their `_id`s, starting at 0.
    pub fn of(query: &Query, records: &'r [Record]) -> Self {
        match query {
            Query::Find(find) => Self::Rows(rows(find, records)),
            Query::Count(filter) => {
                let matching = records.iter().filter(|record| all_match(filter, record));
                Self::Count(slate_bench_harness::number::count(matching.count()))
            }
            Query::Distinct { field, filter, .. } => {
                let matching = records.iter().filter(|record| all_match(filter, record));
                let mut values: Vec<_> = matching.map(|record| record.value(*field)).collect();
                values.sort_unstable();
                values.dedup();
                Self::Values(values)
            }
            Query::Lookups(ids) => {
                let record = |id: &i64| records.get(usize::try_from(*id).ok()?);
                Self::Lookups(ids.iter().filter_map(record).collect())
            }
        }
    }

    /// Returns the summary of a correct result.
    pub fn outline(&self) -> Outline {
        let answer = match self {
            Self::Rows(rows) => rows.rows().iter().map(|record| record.id).collect(),
            Self::Count(count) => Answer::counted(*count),
            Self::Values(values) => Answer::counted(slate_bench_harness::number::count(values.len())),
            Self::Lookups(records) => records.iter().map(|record| record.id).collect(),
        };
        let determined = match self {
            Self::Rows(rows) => rows.determined,
            Self::Lookups(_) => Determined::Ids,
            Self::Count(_) | Self::Values(_) => Determined::Keys,
        };
        Outline { answer, determined }
    }
}

/// The summary of a correct result, which is checked after each measured run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The summary of one correct result.
    pub answer: Answer,
    /// Whether the sums are those of every correct result.
    pub determined: Determined,
}

fn rows<'r>(find: &Find, records: &'r [Record]) -> Rows<'r> {
    let mut matching: Vec<_> = records.iter().filter(|record| all_match(&find.filter, record)).collect();
    // The sort is stable, so ties stay in the order of `_id`.
    matching.sort_by(|left, right| compare(find, left, right));
    let length = matching.len();
    let place = |number: u64| usize::try_from(number).unwrap_or(usize::MAX).min(length);
    let begin = place(find.skip);
    let end = find.limit.map_or(length, |limit| place(find.skip.saturating_add(limit)));
    let cuts_ties = |at: usize| {
        let (before, after) = (at.checked_sub(1).and_then(|before| matching.get(before)), matching.get(at));
        before.zip(after).is_some_and(|(before, after)| compare(find, before, after).is_eq())
    };
    let determined = if cuts_ties(begin) || cuts_ties(end) { Determined::Keys } else { Determined::Ids };
    Rows { range: begin..end, matching, determined }
}

/// Compares two records in the query's sort order.
pub fn compare(find: &Find, left: &Record, right: &Record) -> std::cmp::Ordering {
    let by_field = find.sort.iter().map(|(field, order)| order.compare(&left.value(*field), &right.value(*field)));
    by_field.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Condition, Field, Order, Test};

    /// Returns records with these values of `status` and `contacts_count`.
    fn records(values: &[(&'static str, i32)]) -> Vec<Record> {
        let record = |(id, (status, contacts_count)): (i64, &(&'static str, i32))| Record {
            status,
            contacts_count: *contacts_count,
            ..Record::new(1, 0, id, 0)
        };
        (0..).zip(values).map(record).collect()
    }

    fn ids(expected: &Expected<'_>) -> Vec<i64> {
        let Expected::Rows(rows) = expected else { panic!("not rows: {expected:?}") };
        rows.rows().iter().map(|record| record.id).collect()
    }

    const ACTIVE: Condition = Condition { field: Field::Status, test: Test::Equal(Value::Str("active")) };

    #[test]
    fn rows_are_filtered_sorted_and_cut() {
        let records = records(&[("active", 3), ("rejected", 1), ("active", 2), ("active", 1), ("active", 2)]);
        let find = Find {
            filter: vec![ACTIVE],
            sort: vec![(Field::ContactsCount, Order::Descending)],
            skip: 1,
            limit: Some(2),
            ..Find::default()
        };
        let expected = Expected::of(&Query::Find(find), &records);
        assert_eq!(ids(&expected), [2, 4]);
        let answer = Answer { count: 2, sum: 6, squares: 20 };
        assert_eq!(expected.outline(), Outline { answer, determined: Determined::Ids });
    }

    #[test]
    fn a_limit_within_ties_does_not_determine_the_ids() {
        let records = records(&[("active", 1), ("active", 2), ("active", 2)]);
        let sorted = |limit| Find { sort: vec![(Field::ContactsCount, Order::Ascending)], limit, ..Find::default() };
        let known = |find: Find| Expected::of(&Query::Find(find), &records).outline().determined == Determined::Ids;
        assert!(known(sorted(None)) && known(sorted(Some(1))) && known(sorted(Some(3))));
        assert!(!known(sorted(Some(2))));
        assert!(!known(Find { limit: Some(2), ..Find::default() }), "without a sort all are equal");
    }

    #[test]
    fn counts_and_values_are_those_of_matching_records() {
        let records = records(&[("active", 3), ("rejected", 1), ("active", 2), ("active", 3)]);
        assert_eq!(Expected::of(&Query::Count(vec![ACTIVE]), &records), Expected::Count(3));
        let distinct = Query::Distinct { field: Field::ContactsCount, filter: vec![ACTIVE], sort: None };
        assert_eq!(Expected::of(&distinct, &records), Expected::Values(vec![Value::Int(2), Value::Int(3)]));
    }
}
