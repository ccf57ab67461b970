//! `Metrics::prometheus` writes the text format, which a strict parser reads here.

use std::{collections::BTreeSet, iter::Peekable, str::Lines};

use super::*;

/// All lines of one metric.
struct Family {
    name: String,
    kind: String,
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// Parses a text, and panics where Prometheus' format (version 0.0.4) or its conventions are violated.
fn parse(text: &str) -> Vec<Family> {
    assert!(text.ends_with('\n'), "the last line has an end");
    let mut lines = text.lines().peekable();
    let mut families = Vec::new();
    while lines.peek().is_some() {
        families.push(family(&mut lines));
    }
    let names: BTreeSet<_> = families.iter().map(|family| &family.name).collect();
    assert_eq!(names.len(), families.len(), "the lines of a metric are together");
    families
}

fn family(lines: &mut Peekable<Lines<'_>>) -> Family {
    let (name, help) = lines.next().unwrap().strip_prefix("# HELP ").unwrap().split_once(' ').unwrap();
    assert!(help.ends_with('.') && !help.contains('\\'), "{help}");
    assert!(name.starts_with("slate_") && is_name(name), "{name}");
    let (again, kind) = lines.next().unwrap().strip_prefix("# TYPE ").unwrap().split_once(' ').unwrap();
    assert_eq!(again, name);
    assert!(["counter", "gauge", "histogram"].contains(&kind), "{kind}");
    assert_eq!(name.ends_with("_total"), kind == "counter", "{name} is a {kind}");
    let mut samples = Vec::new();
    while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
        let sample = sample(line);
        let ending = sample.name.strip_prefix(name).unwrap();
        let endings: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
        assert!(endings.contains(&ending), "{line}");
        samples.push(sample);
    }
    assert!(!samples.is_empty(), "{name} has no lines");
    let series: BTreeSet<_> = samples.iter().map(|sample| (&sample.name, &sample.labels)).collect();
    assert_eq!(series.len(), samples.len(), "{name} has a series twice");
    Family { name: name.to_owned(), kind: kind.to_owned(), samples }
}

/// Returns whether this can be the name of a metric or a label.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_')
}

fn sample(line: &str) -> Sample {
    let end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (name, quoted) = rest.split_once("=\"").unwrap();
            assert!(is_name(name), "{line}");
            let (value, after) = unquoted(quoted);
            assert_eq!(labels.insert(name.to_owned(), value), None, "{line}");
            let (next, after) = after.split_at(1);
            rest = after;
            if next == "}" {
                break;
            }
            assert_eq!(next, ",", "{line}");
        }
    }
    let value = rest.strip_prefix(' ').unwrap();
    assert!(value.starts_with(|first: char| first.is_ascii_digit()) && !value.contains(' '), "{line}");
    Sample { name: name.to_owned(), labels, value: value.parse().unwrap() }
}

/// Returns the value of a label up to its closing quote, and what follows.
fn unquoted(quoted: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = quoted.chars();
    loop {
        match chars.next().unwrap() {
            '"' => return (value, chars.as_str()),
            '\\' => value.push(match chars.next().unwrap() {
                'n' => '\n',
                escaped @ ('\\' | '"') => escaped,
                other => panic!("\\{other}"),
            }),
            char => value.push(char),
        }
    }
}

/// Checks the buckets of each histogram of the family, and returns how many histograms it has.
fn checked_histograms(family: &Family) -> usize {
    /// What follows the family's name, the bound of a bucket, and the value.
    type Line<'f> = (&'f str, Option<f64>, f64);
    let mut series: BTreeMap<BTreeMap<String, String>, Vec<Line<'_>>> = BTreeMap::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        let bound =
            labels.remove("le").map(|bound| if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() });
        let ending = sample.name.strip_prefix(&family.name).unwrap();
        series.entry(labels).or_default().push((ending, bound, sample.value));
    }
    for (labels, lines) in &series {
        let (buckets, rest) = lines.split_at(lines.len() - 2);
        assert!(buckets.iter().all(|(ending, bound, _)| *ending == "_bucket" && bound.is_some()), "{labels:?}");
        assert!(buckets.is_sorted_by(|(_, a, below_a), (_, b, below_b)| a < b && below_a <= below_b), "{labels:?}");
        let (_, last_bound, all) = buckets.last().unwrap();
        assert_eq!(*last_bound, Some(f64::INFINITY));
        assert_eq!((rest[0].0, rest[1]), ("_sum", ("_count", None, *all)));
    }
    series.len()
}

/// Returns the values of a metric by the values of their labels, in the order of the labels' names.
fn values(families: &[Family], name: &str) -> BTreeMap<Vec<String>, f64> {
    let family = families.iter().find(|family| name.starts_with(&family.name)).unwrap();
    let samples = family.samples.iter().filter(|sample| sample.name == name);
    samples.map(|sample| (sample.labels.values().cloned().collect(), sample.value)).collect()
}

#[test]
fn the_text_has_every_number_in_prometheus_format() {
    let db = Database::open("memory:").unwrap();
    let numbers = numbers(&db, 1_000);
    for n in 0..100 {
        numbers.find_by_id(n).unwrap();
        numbers.find(doc! { "n": n }).collect().unwrap();
    }
    numbers.insert_one(&rawdoc! { "_id": 1 }).unwrap_err();
    numbers.delete_many(doc! { "rest": 3 }).run().unwrap();
    let metrics = db.metrics();
    let families = parse(&metrics.prometheus().size(db.size().unwrap()).to_string());

    let calls = values(&families, "slate_operations_total");
    let failures = values(&families, "slate_operation_failures_total");
    for kind in OperationKind::ALL {
        let (label, operation) = (vec![kind.to_string()], metrics.operation(kind));
        assert_eq!((calls[&label], failures[&label]), (operation.calls as f64, operation.failures as f64), "{kind}");
        let times = values(&families, "slate_operation_seconds_count").get(&label).copied();
        assert_eq!(times, (operation.calls > 0).then_some(operation.latency.count() as f64), "{kind}");
    }
    assert_eq!((calls[&vec!["find".to_owned()]], failures[&vec!["insert".to_owned()]]), (100.0, 1.0));
    let times = families.iter().find(|family| family.kind == "histogram").unwrap();
    assert_eq!(checked_histograms(times), calls.values().filter(|calls| **calls > 0.0).count());
    let sum = values(&families, "slate_operation_seconds_sum")[&vec!["find".to_owned()]];
    let expected = metrics.operation(OperationKind::Find).latency.sum().as_secs_f64();
    assert!(sum > 0.0 && (sum - expected).abs() < 1e-12, "{sum} seconds");
    let ends = metrics.operation(OperationKind::Find).latency.buckets().count();
    assert_eq!(values(&families, "slate_operation_seconds_bucket").len(), ends * checked_histograms(times));

    let numbers = [
        ("slate_rows_returned_total", metrics.rows_returned),
        ("slate_bytes_returned_total", metrics.bytes_returned),
        ("slate_documents_written_total", 1_100),
        ("slate_keys_examined_total", metrics.keys_examined),
        ("slate_documents_examined_total", metrics.documents_examined),
        ("slate_commits_total", 2),
        ("slate_conflicts_total", 0),
        ("slate_retries_total", 0),
        ("slate_cache_hits_total", 0),
        ("slate_cache_misses_total", 0),
        ("slate_catalog_reads_total", metrics.catalog_reads),
        ("slate_spills_total", 0),
        ("slate_spilled_bytes_total", 0),
    ];
    for (name, expected) in numbers {
        assert_eq!(values(&families, name), BTreeMap::from([(vec![], expected as f64)]), "{name}");
    }
    // A store in memory has no files.
    assert!(families.iter().any(|family| family.name == "slate_memory_bytes" && family.kind == "gauge"));
    assert!(
        !families.iter().any(|family| ["slate_storage_read_bytes_total", "slate_disk_bytes"].contains(&&*family.name))
    );
}

#[test]
fn the_sizes_of_a_file_are_gauges() {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::open(&format!("redb:{}", folder.path().join("db.slate").display())).unwrap();
    numbers(&db, 100);
    let (metrics, size) = (db.metrics(), db.size().unwrap());
    let families = parse(&metrics.prometheus().size(size).to_string());
    let only = |name| values(&families, name)[&vec![]];
    assert_eq!(only("slate_disk_bytes"), size.on_disk.unwrap() as f64);
    assert_eq!(only("slate_storage_read_bytes_total"), metrics.storage_bytes.unwrap() as f64);
    let gauges = families.iter().filter(|family| family.kind == "gauge").count();
    // And the age of the oldest snapshot.
    assert_eq!(gauges, 1 + [size.on_disk, size.free, size.data, size.in_memory].iter().flatten().count());
    let without = parse(&metrics.prometheus().to_string());
    assert!(
        without.iter().all(|family| family.kind != "gauge" || family.name == "slate_oldest_snapshot_seconds"),
        "the size was not added"
    );
}

#[test]
fn databases_of_one_process_are_told_apart_by_an_escaped_label() {
    let (shop, log) = (Database::open("memory:").unwrap(), Database::open("memory:").unwrap());
    numbers(&shop, 10);
    let (of_shop, of_log) = (shop.metrics(), log.metrics());
    let name = "C:\\data\n\"{é}\", x=\"";
    let text = of_shop.prometheus().database(name).and(of_log.prometheus().database("log")).to_string();
    let families = parse(&text);
    let commits = values(&families, "slate_commits_total");
    assert_eq!(commits, BTreeMap::from([(vec![name.to_owned()], 1.0), (vec!["log".to_owned()], 0.0)]));
    let inserts = values(&families, "slate_operations_total");
    assert_eq!(inserts[&vec![name.to_owned(), "insert".to_owned()]], 1.0);
    assert_eq!(inserts.len(), 2 * OperationKind::ALL.len());
    let times = families.iter().find(|family| family.kind == "histogram").unwrap();
    assert_eq!(checked_histograms(times), 2, "an insertion and a commit in the shop");
}

#[test]
fn a_database_that_has_done_nothing_has_a_text() {
    let db = Database::open("memory:").unwrap();
    let families = parse(&db.metrics().prometheus().to_string());
    assert!(families.iter().flat_map(|family| &family.samples).any(|sample| sample.value == 0.0));
}
