//! Exports a database's metrics in Prometheus' text format.
//!
//! ```sh
//! cargo run --example metrics                     # does some work and prints the metrics
//! cargo run --example metrics -- 127.0.0.1:9464   # serves them at http://127.0.0.1:9464/metrics
//! ```
//!
//! A service calls `prometheus` in the handler of its own HTTP framework.

use std::{
    fmt::Write,
    io::{BufRead, BufReader, Write as _},
    net::TcpListener,
    time::Duration,
};

use bson::doc;
use slate_core::{Database, Histogram, Metrics, StorageSize};

/// Returns the metrics in Prometheus' text format, version 0.0.4.
fn prometheus(metrics: &Metrics, size: &StorageSize) -> String {
    let mut out = String::new();
    family(&mut out, "slate_operations_total", "counter", "Finished operations");
    for (kind, operation) in &metrics.operations {
        line(&mut out, "slate_operations_total", &format!("{{operation=\"{kind}\"}}"), operation.calls);
    }
    family(&mut out, "slate_operation_failures_total", "counter", "Operations that failed");
    for (kind, operation) in &metrics.operations {
        line(&mut out, "slate_operation_failures_total", &format!("{{operation=\"{kind}\"}}"), operation.failures);
    }
    family(&mut out, "slate_operation_seconds", "histogram", "Times of operations");
    for (kind, operation) in metrics.operations.iter().filter(|(_, operation)| operation.calls > 0) {
        histogram(&mut out, "slate_operation_seconds", &format!("operation=\"{kind}\""), &operation.latency);
    }
    for (name, help, number) in [
        ("rows_returned", "Rows that reads returned", metrics.rows_returned),
        ("bytes_returned", "Bytes of these rows", metrics.bytes_returned),
        ("documents_written", "Documents inserted, changed or deleted", metrics.documents_written),
        ("keys_examined", "Keys that plans read", metrics.keys_examined),
        ("documents_examined", "Documents that plans read", metrics.documents_examined),
        ("commits", "Successful commits", metrics.commits()),
        ("conflicts", "Operations and commits that met a conflict", metrics.conflicts),
        ("retries", "Attempts after a conflict", metrics.retries),
        ("cache_hits", "Reads by key from the cache", metrics.cache_hits),
        ("cache_misses", "Reads by key that the cache could not answer", metrics.cache_misses),
        ("catalog_reads", "Reads of the list of collections", metrics.catalog_reads),
        ("spills", "Sorted runs in temporary files", metrics.spills),
        ("spilled_bytes", "Bytes written to temporary files", metrics.spilled_bytes),
    ] {
        let name = format!("slate_{name}_total");
        family(&mut out, &name, "counter", help);
        line(&mut out, &name, "", number);
    }
    // What a store does not know is left out.
    if let Some(bytes) = metrics.storage_bytes {
        family(&mut out, "slate_storage_read_bytes_total", "counter", "Bytes read from the files");
        line(&mut out, "slate_storage_read_bytes_total", "", bytes);
    }
    for (name, help, bytes) in [
        ("slate_disk_bytes", "Bytes of the files", size.on_disk),
        ("slate_free_bytes", "Free bytes within the files", size.free),
        ("slate_memory_bytes", "Bytes of main memory that hold or cache data", size.in_memory),
    ] {
        if let Some(bytes) = bytes {
            family(&mut out, name, "gauge", help);
            line(&mut out, name, "", bytes);
        }
    }
    out
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# HELP {name} {help}.\n# TYPE {name} {kind}");
}

fn line(out: &mut String, name: &str, labels: &str, number: impl std::fmt::Display) {
    let _ = writeln!(out, "{name}{labels} {number}");
}

/// Prometheus' buckets are cumulative, and their bounds are in seconds.
fn histogram(out: &mut String, name: &str, label: &str, times: &Histogram) {
    let mut below = 0;
    for (end, count) in times.buckets() {
        below += count;
        let end = end.map_or_else(|| "+Inf".to_owned(), |end| end.as_secs_f64().to_string());
        line(out, &format!("{name}_bucket"), &format!("{{{label},le=\"{end}\"}}"), below);
    }
    line(out, &format!("{name}_sum"), &format!("{{{label}}}"), times.sum().as_secs_f64());
    line(out, &format!("{name}_count"), &format!("{{{label}}}"), times.count());
}

/// Answers each request with the metrics.
fn serve(db: &Database, address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(address)?;
    println!("http://{}/metrics", listener.local_addr()?);
    for stream in listener.incoming() {
        let mut stream = stream?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        // The request's lines up to the empty one. A client that sends nothing gets no answer.
        let mut lines = BufReader::new(&stream).lines();
        if !lines.by_ref().map_while(Result::ok).any(|line| line.is_empty()) {
            continue;
        }
        let body = prometheus(&db.metrics(), &db.size()?);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        // The client may be gone.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    }
    Ok(())
}

fn work(db: &Database) -> slate_core::Result<()> {
    let users = db.collection("users");
    users.insert_many(&(0..1_000).map(|n| doc! { "_id": n, "age": n % 90 }).collect::<Vec<_>>()).run()?;
    for n in 0..100 {
        users.find_by_id(n)?;
        users.find(doc! { "age": n }).collect()?;
    }
    users.delete_many(doc! { "age": { "$lt": 18 } }).run()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let db = Database::open("memory:")?;
    work(&db)?;
    match std::env::args().nth(1) {
        Some(address) => serve(&db, &address),
        None => {
            print!("{}", prometheus(&db.metrics(), &db.size()?));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of the sample with this name and these labels.
    fn sample(text: &str, name: &str) -> f64 {
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.and_then(|number| number.parse().ok()).unwrap_or(f64::NAN)
    }

    #[test]
    fn the_text_is_what_prometheus_reads() {
        let db = Database::open("memory:").unwrap();
        work(&db).unwrap();
        let text = prometheus(&db.metrics(), &db.size().unwrap());
        assert_eq!(sample(&text, "slate_operations_total{operation=\"find\"}"), 100.0);
        assert_eq!(sample(&text, "slate_operations_total{operation=\"find_by_id\"}"), 100.0);
        assert_eq!(sample(&text, "slate_operation_failures_total{operation=\"find\"}"), 0.0);
        assert_eq!(sample(&text, "slate_operation_seconds_count{operation=\"find\"}"), 100.0);
        assert_eq!(sample(&text, "slate_operation_seconds_bucket{operation=\"find\",le=\"+Inf\"}"), 100.0);
        assert!(sample(&text, "slate_operation_seconds_sum{operation=\"find\"}") > 0.0);
        assert_eq!(sample(&text, "slate_commits_total"), 2.0);
        assert_eq!(sample(&text, "slate_documents_written_total"), 1_208.0);
        let mut below = 0.0;
        for line in text.lines().filter(|line| line.starts_with("slate_operation_seconds_bucket{operation=\"find\"")) {
            let number: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
            assert!(number >= below, "buckets are cumulative: {line}");
            below = number;
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, number) = line.rsplit_once(' ').unwrap();
            let family = name.split('{').next().unwrap();
            let family =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| family.strip_suffix(end)).unwrap_or(family);
            assert!(text.contains(&format!("# TYPE {family} ")), "{line}");
            assert!(number.parse::<f64>().is_ok(), "{line}");
        }
    }
}
