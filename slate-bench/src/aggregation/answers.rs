use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use slate_bench_harness::{
    Result,
    number::{count, float},
};

use super::{Cell, Company, Question, Rows};
use crate::Record;

/// Computes the answer to a question from the records, sorted.
///
/// # Errors
/// Fails if the question is not one of [`QUESTIONS`](super::QUESTIONS).
pub fn answer(question: &Question, records: &[Record]) -> Result<Rows> {
    let total = |records: &mut dyn Iterator<Item = &Record>| -> i64 {
        records.map(|record| i64::from(record.contacts_count)).sum()
    };
    let mut rows: Rows = match question.name {
        "count and sum" => vec![vec![counted(records.len()), total(&mut records.iter()).into()]],
        "largest contacts_count (indexed)" => {
            vec![vec![i64::from(records.iter().map(|record| record.contacts_count).max().unwrap_or_default()).into()]]
        }
        "group by status (2 groups)" => grouped(records, |record| record.status)
            .map(|(status, records)| {
                let latest = records.iter().filter_map(|record| record.last_contacted_at).max();
                let latest = latest.map_or(Cell::Null, Cell::from);
                vec![status.into(), counted(records.len()), total(&mut records.into_iter()).into(), latest]
            })
            .collect(),
        "group by name (nearly unique)" => {
            let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
            grouped(records, |record| record.name.as_str())
                .for_each(|(_, records)| *sizes.entry(records.len()).or_default() += 1);
            sizes.into_iter().map(|(size, names)| vec![counted(size), counted(names)]).collect()
        }
        "match status (indexed) + group by contacts_count" => {
            let active: Vec<Record> = records.iter().filter(|record| record.status == "active").cloned().collect();
            grouped(&active, |record| record.contacts_count)
                .map(|(value, records)| {
                    let first = records.iter().map(|record| record.name.as_str()).min().unwrap_or_default();
                    vec![i64::from(value).into(), counted(records.len()), first.into()]
                })
                .collect()
        }
        "unwind tags + group" => counts(records.iter().flat_map(|record| record.tags.iter().copied())),
        "lookup of 1,000 by index + group" | "lookup of 1,000 without index + group" => {
            let regions: HashMap<i32, &str> = Company::all().map(|company| (company.code, company.region)).collect();
            counts(records.iter().filter_map(|record| regions.get(&record.contacts_count).copied()))
        }
        "top 3 per product" => grouped(records, |record| record.recommendations[0])
            .flat_map(|(product, mut records)| {
                records.sort_by_key(|record| (Reverse(record.contacts_count), record.id));
                records.truncate(3);
                records.into_iter().map(move |record| vec![product.into(), record.name.as_str().into()])
            })
            .collect(),
        "window: running total per status" => grouped(records, |record| record.status)
            .map(|(status, records)| {
                let running = records.iter().scan(0_u64, |sum, record| {
                    *sum += u64::from(record.contacts_count.unsigned_abs());
                    Some(*sum)
                });
                vec![status.into(), Cell::Number(float(running.sum()))]
            })
            .collect(),
        "facet: by status, by product, count" => {
            let statuses = counts(records.iter().map(|record| record.status));
            let products = counts(records.iter().map(|record| record.recommendations[0]));
            [statuses, products, vec![vec!["all".into(), counted(records.len())]]].concat()
        }
        unknown => return Err(format!("no answer to {unknown} is known").into()),
    };
    rows.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    Ok(rows)
}

fn counted(number: usize) -> Cell {
    Cell::Number(float(count(number)))
}

/// Returns the number of occurrences of each value.
fn counts<'r>(values: impl Iterator<Item = &'r str>) -> Rows {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    counts.into_iter().map(|(value, number)| vec![value.into(), counted(number)]).collect()
}

/// Groups the records by a key, in the order of the keys. Within a group they keep their order.
fn grouped<'r, K: Ord>(
    records: &'r [Record],
    key: impl Fn(&'r Record) -> K,
) -> impl Iterator<Item = (K, Vec<&'r Record>)> {
    let mut groups: BTreeMap<K, Vec<&Record>> = BTreeMap::new();
    records.iter().for_each(|record| groups.entry(key(record)).or_default().push(record));
    groups.into_iter()
}
