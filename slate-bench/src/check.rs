//! Compares results with the expected ones, and describes the differences.

use std::collections::HashSet;

use bson::{Bson, Document};

use crate::{
    Answer, Field, Find, Query, Record, Value,
    expected::{Determined, Expected, Outline, Rows, compare},
    workload::all_match,
};

/// The complete result of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Fetched {
    /// The result of [`Query::Find`] or [`Query::Lookups`]: documents in order.
    Documents(Vec<Document>),
    /// The result of [`Query::Count`].
    Count(u64),
    /// The result of [`Query::Distinct`]: values in order.
    Values(Vec<Bson>),
}

/// A description of the difference between a result and the expected one.
pub type Wrong = String;

/// Compares the summary of a result with the expected one. Sums of `_id`s count only if they are determined.
///
/// # Errors
/// Returns a description of the difference.
pub fn check_answer(answer: &Answer, expected: &Outline) -> Result<(), Wrong> {
    let wanted = expected.answer;
    if answer.count != wanted.count {
        return Err(format!("{} rows, expected {}", answer.count, wanted.count));
    }
    if expected.determined == Determined::Ids && *answer != wanted {
        return Err(format!("{} rows as expected, but with different _ids", answer.count));
    }
    Ok(())
}

/// Compares a complete result: every field of every document, the order, the values. `records` are all records in the
/// order of their `_id`s, starting at 0.
///
/// # Errors
/// Returns a description of the difference.
pub fn check_fetched(
    fetched: &Fetched,
    query: &Query,
    expected: &Expected<'_>,
    records: &[Record],
) -> Result<(), Wrong> {
    match (fetched, query, expected) {
        (Fetched::Documents(documents), Query::Find(find), Expected::Rows(rows)) => {
            check_rows(documents, find, rows, records)
        }
        (Fetched::Documents(documents), Query::Lookups(_), Expected::Lookups(wanted)) => {
            if documents.len() != wanted.len() {
                return Err(format!("found {}, expected {}", documents.len(), wanted.len()));
            }
            wanted.iter().zip(documents).try_for_each(|(record, document)| check_document(document, record, None))
        }
        (Fetched::Count(count), Query::Count(_), Expected::Count(wanted)) if count == wanted => Ok(()),
        (Fetched::Count(count), Query::Count(_), Expected::Count(wanted)) => {
            Err(format!("counted {count} where {wanted} are expected"))
        }
        (Fetched::Values(values), Query::Distinct { sort, .. }, Expected::Values(wanted)) => {
            check_values(values, sort.map(|order| move |a: &Value<'_>, b: &Value<'_>| order.compare(a, b)), wanted)
        }
        _ => Err("a result of another kind than the query".into()),
    }
}

fn check_rows(documents: &[Document], find: &Find, expected: &Rows<'_>, records: &[Record]) -> Result<(), Wrong> {
    let wanted = expected.rows();
    if documents.len() != wanted.len() {
        return Err(format!("{} documents, expected {}", documents.len(), wanted.len()));
    }
    let mut seen = HashSet::new();
    for (place, (document, wanted)) in documents.iter().zip(wanted).enumerate() {
        let record = record_of(document, records)?;
        check_document(document, record, find.projection.as_deref())?;
        if !seen.insert(record.id) {
            return Err(format!("the document with _id {} was returned twice", record.id));
        }
        if !all_match(&find.filter, record) {
            return Err(format!("the document with _id {} does not match the filter", record.id));
        }
        if compare(find, record, wanted).is_ne() {
            return Err(format!("row {place}, with _id {}, is at the wrong position of the sort", record.id));
        }
    }
    let same = || wanted.iter().all(|record| seen.contains(&record.id));
    if expected.determined == Determined::Ids && !same() {
        return Err("the expected number of documents, but other documents".into());
    }
    Ok(())
}

fn record_of<'r>(document: &Document, records: &'r [Record]) -> Result<&'r Record, Wrong> {
    let id = match document.get("_id") {
        Some(Bson::Int64(id)) => *id,
        Some(Bson::Int32(id)) => i64::from(*id),
        other => return Err(format!("unknown _id: {other:?}")),
    };
    let record = usize::try_from(id).ok().and_then(|id| records.get(id));
    record.ok_or_else(|| format!("unknown _id: {id}"))
}

/// Compares a document with its record: it must have the projected fields and no others, in any order.
///
/// # Errors
/// Returns a description of the difference.
pub fn check_document(document: &Document, record: &Record, projection: Option<&[Field]>) -> Result<(), Wrong> {
    let fields = projection.unwrap_or(&Field::ALL);
    let id = document.get("_id").and_then(Value::of);
    if id != Some(Value::Int(record.id)) {
        return Err(format!("expected the document with _id {}, found {id:?}", record.id));
    }
    for field in fields {
        let (value, wanted) = (document.get(field.name()), record.value(*field));
        if !value.is_some_and(|value| wanted.is(value)) {
            let name = field.name();
            return Err(format!("{name} of _id {} is {value:?}, expected {wanted:?}", record.id));
        }
    }
    if document.len() != fields.len() + 1 {
        return Err(format!("the document with _id {} has the wrong fields: {document}", record.id));
    }
    Ok(())
}

fn check_values(
    values: &[Bson],
    sort: Option<impl Fn(&Value<'_>, &Value<'_>) -> std::cmp::Ordering>,
    wanted: &[Value<'_>],
) -> Result<(), Wrong> {
    let mut found = Vec::with_capacity(values.len());
    for value in values {
        found.push(Value::of(value).ok_or_else(|| format!("unknown value: {value}"))?);
    }
    if sort.is_some_and(|sort| !found.is_sorted_by(|left, right| sort(left, right).is_lt())) {
        return Err("the values are not in the requested order".into());
    }
    found.sort_unstable();
    if found == wanted {
        return Ok(());
    }
    let missing = wanted.iter().find(|value| found.binary_search(value).is_err());
    let foreign = found.iter().find(|value| wanted.binary_search(value).is_err());
    Err(format!(
        "{} values, expected {}; missing, for example: {missing:?}; surplus: {foreign:?}",
        found.len(),
        wanted.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::query_rows;

    /// Returns a correct result of a query, changed by `spoil`.
    fn check(name: &str, spoil: impl Fn(&mut Vec<Document>)) -> Result<(), Wrong> {
        let records: Vec<Record> = (0..300).map(|id| Record::new(9, 0, id, 0)).collect();
        let rows = query_rows(300, 9);
        let row = rows.iter().find(|row| row.name == name).unwrap();
        let expected = Expected::of(&row.query, &records);
        let right: Vec<&Record> = match &expected {
            Expected::Rows(rows) => rows.rows().to_vec(),
            Expected::Lookups(records) => records.clone(),
            _ => panic!("no rows"),
        };
        let mut documents: Vec<_> =
            right.iter().map(|record| Document::try_from(&*record.to_document()).unwrap()).collect();
        spoil(&mut documents);
        check_fetched(&Fetched::Documents(documents), &row.query, &expected, &records)
    }

    const SCAN: &str = "Full scan (no filter)";
    const SORTED: &str = "sort contacts_count + take(200)";
    const TAKE: &str = "status='active' + take(200) (no sort)";

    #[test]
    fn correct_results_pass_in_every_allowed_order() {
        for name in [SCAN, SORTED, TAKE, "1,000 point lookups (find_by_id)"] {
            assert_eq!(check(name, |_| {}), Ok(()), "{name}");
        }
        assert_eq!(check(SCAN, |documents| documents.reverse()), Ok(()));
        assert_eq!(check(TAKE, |documents| documents.reverse()), Ok(()));
    }

    #[test]
    fn wrong_results_are_described() {
        let wrong = |name: &str, spoil: fn(&mut Vec<Document>)| check(name, spoil).unwrap_err();
        assert!(wrong(SCAN, |documents| drop(documents.pop())).contains("299 documents, expected 300"));
        assert!(wrong(SCAN, |documents| documents[0] = documents[1].clone()).contains("twice"));
        assert!(wrong(SORTED, |documents| documents.reverse()).contains("sort"));
        assert!(wrong(SCAN, |documents| drop(documents[3].insert("name", "Nobody"))).contains("name of _id 3"));
        assert!(wrong(SCAN, |documents| drop(documents[3].insert("more", 1))).contains("wrong fields"));
        assert!(wrong(SCAN, |documents| drop(documents[3].insert("_id", 777_i64))).contains("777"));
        let lookups = "1,000 point lookups (find_by_id)";
        assert!(wrong(lookups, |documents| documents.swap(0, 1)).contains("expected the document with"));
    }

    #[test]
    fn values_are_compared_as_a_set_unless_sorted() {
        let records: Vec<Record> = (0..300).map(|id| Record::new(9, 0, id, 0)).collect();
        let distinct = |sort| Query::Distinct { field: Field::Status, filter: vec![], sort };
        let check = |values: &[&str], sort| {
            let query = distinct(sort);
            let fetched = Fetched::Values(values.iter().map(|value| Bson::from(*value)).collect());
            check_fetched(&fetched, &query, &Expected::of(&query, &records), &records)
        };
        assert_eq!(check(&["rejected", "active"], None), Ok(()));
        assert!(check(&["rejected", "active"], Some(crate::Order::Ascending)).unwrap_err().contains("order"));
        assert_eq!(check(&["rejected", "active"], Some(crate::Order::Descending)), Ok(()));
        assert!(check(&["active"], None).unwrap_err().contains("missing, for example: Some(Str(\"rejected\"))"));
    }

    #[test]
    fn sums_are_compared_where_they_are_known() {
        let records: Vec<Record> = (0..300).map(|id| Record::new(9, 0, id, 0)).collect();
        let scan = Expected::of(&Query::Find(Find::default()), &records).outline();
        assert_eq!(check_answer(&(0..300).collect(), &scan), Ok(()));
        assert!(check_answer(&(1..301).collect(), &scan).is_err());
        let take = Expected::of(&Query::Find(Find { limit: Some(10), ..Find::default() }), &records).outline();
        assert_eq!(check_answer(&(50..60).collect(), &take), Ok(()));
        assert!(check_answer(&(50..59).collect(), &take).is_err());
    }
}
