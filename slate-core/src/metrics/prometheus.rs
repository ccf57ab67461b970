use std::fmt::{self, Display, Formatter};

use super::{Histogram, Metrics, OperationKind, OperationMetrics};
use crate::StorageSize;

/// The metrics of one or several databases in Prometheus' text format, version 0.0.4; see [`Metrics::prometheus`].
///
/// `Display` writes the text, so `to_string()` returns it. Every metric's name begins with `slate_`. Times are in seconds,
/// sizes in bytes.
#[derive(Clone, Debug)]
#[must_use = "`Display` writes the text"]
pub struct Prometheus<'m> {
    databases: Vec<DatabaseMetrics<'m>>,
}

/// The metrics of one database, and the label that distinguishes it.
#[derive(Clone, Copy, Debug)]
struct DatabaseMetrics<'m> {
    name: Option<&'m str>,
    metrics: &'m Metrics,
    size: Option<StorageSize>,
}

impl Metrics {
    /// Returns the metrics in Prometheus' text format: `db.metrics().prometheus().to_string()` is the body of an HTTP response
    /// of the type [`Prometheus::CONTENT_TYPE`].
    ///
    /// Every kind of operation has its number of calls and of failures. Only kinds that were called have a histogram of
    /// times, which takes 36 lines.
    ///
    /// ```
    /// # use slate_core::{Database, bson::doc};
    /// # let db = Database::open("memory:")?;
    /// db.collection("users").insert_one(&doc! { "name": "Ada" })?;
    /// let text = db.metrics().prometheus().size(db.size()?).to_string();
    /// assert!(text.contains("\nslate_operations_total{operation=\"insert\"} 1\n"));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn prometheus(&self) -> Prometheus<'_> {
        Prometheus { databases: vec![DatabaseMetrics { name: None, metrics: self, size: None }] }
    }
}

impl<'m> Prometheus<'m> {
    /// The type of the text, for the header `Content-Type` of a response.
    pub const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// Adds the sizes that [`Database::size`](crate::Database::size) returns. A size that the store does not know is left out.
    pub fn size(mut self, size: StorageSize) -> Self {
        self.databases.iter_mut().for_each(|database| database.size = Some(size));
        self
    }

    /// Adds a label `database` with this value to each line. A process that reports several databases needs it to tell them apart.
    pub fn database(mut self, name: &'m str) -> Self {
        self.databases.iter_mut().for_each(|database| database.name = Some(name));
        self
    }

    /// Adds the metrics of another database, which must have another name. (Two texts cannot be concatenated: all lines of a
    /// metric must be together.)
    ///
    /// ```
    /// # use slate_core::Database;
    /// # let (shop, log) = (Database::open("memory:")?, Database::open("memory:")?);
    /// let (shop, log) = (shop.metrics(), log.metrics());
    /// let text = shop.prometheus().database("shop").and(log.prometheus().database("log")).to_string();
    /// assert!(text.contains("\nslate_commits_total{database=\"log\"} 0\n"));
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn and(mut self, other: Self) -> Self {
        self.databases.extend(other.databases);
        self
    }

    /// Yields the operations of all databases.
    fn operations(&self) -> impl Iterator<Item = (DatabaseMetrics<'m>, OperationKind, &'m OperationMetrics)> {
        self.databases.iter().flat_map(|database| {
            database.metrics.operations.iter().map(move |(kind, operation)| (*database, *kind, operation))
        })
    }
}

impl Display for Prometheus<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        header(f, "slate_operations_total", "counter", "Finished operations.")?;
        for (database, kind, operation) in self.operations() {
            writeln!(f, "slate_operations_total{} {}", database.labels().of(kind), operation.calls)?;
        }
        header(f, "slate_operation_failures_total", "counter", "Operations that failed.")?;
        for (database, kind, operation) in self.operations() {
            writeln!(f, "slate_operation_failures_total{} {}", database.labels().of(kind), operation.failures)?;
        }
        let called = self.operations().filter(|(_, _, operation)| operation.calls > 0);
        for (number, (database, kind, operation)) in called.enumerate() {
            if number == 0 {
                header(
                    f,
                    "slate_operation_seconds",
                    "histogram",
                    "Times of operations; of find_by_id, one call in 32.",
                )?;
            }
            histogram(f, database.labels().of(kind), &operation.latency)?;
        }
        for number in &NUMBERS {
            number.write(f, &self.databases)?;
        }
        Ok(())
    }
}

fn header(f: &mut Formatter<'_>, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(f, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// Prometheus' buckets are cumulative. Empty ones are written, too: a sum over several processes needs the same buckets in each.
fn histogram(f: &mut Formatter<'_>, labels: Labels<'_>, times: &Histogram) -> fmt::Result {
    let mut below = 0;
    for (end, count) in times.buckets() {
        below += count;
        let bound = BucketBound(end.map_or(f64::INFINITY, |end| end.as_secs_f64()));
        writeln!(f, "slate_operation_seconds_bucket{} {below}", Labels { bound: Some(bound), ..labels })?;
    }
    writeln!(f, "slate_operation_seconds_sum{labels} {}", times.sum().as_secs_f64())?;
    writeln!(f, "slate_operation_seconds_count{labels} {below}")
}

/// The labels of a line. Those that are `None` are left out; without labels there are no braces.
#[derive(Clone, Copy)]
struct Labels<'m> {
    database: Option<&'m str>,
    operation: Option<OperationKind>,
    bound: Option<BucketBound>,
}

impl<'m> DatabaseMetrics<'m> {
    fn labels(&self) -> Labels<'m> {
        Labels { database: self.name, operation: None, bound: None }
    }
}

impl Labels<'_> {
    fn of(self, kind: OperationKind) -> Self {
        Self { operation: Some(kind), ..self }
    }
}

impl Display for Labels<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut before = '{';
        let mut label = |name: &str, value: &dyn Display| {
            write!(f, "{before}{name}=\"{value}\"")?;
            before = ',';
            Ok(())
        };
        self.database.map_or(Ok(()), |name| label("database", &Escaped(name)))?;
        self.operation.map_or(Ok(()), |kind| label("operation", &kind))?;
        self.bound.map_or(Ok(()), |bound| label("le", &bound))?;
        if before == ',' { f.write_str("}") } else { Ok(()) }
    }
}

/// The upper bound of a bucket in seconds.
#[derive(Clone, Copy)]
struct BucketBound(f64);

impl Display for BucketBound {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_finite() { self.0.fmt(f) } else { f.write_str("+Inf") }
    }
}

/// The value of a label: three characters are escaped.
struct Escaped<'m>(&'m str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|char| match char {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            char => write!(f, "{char}"),
        })
    }
}

/// A metric with one number for each database.
struct Number {
    /// The name without the prefix `slate_` and without `ending`.
    name: &'static str,
    kind: &'static str,
    ending: &'static str,
    help: &'static str,
    /// Reads the number; `None` if the store does not know it, or the size was not added.
    read: Read,
}

type Read = fn(&DatabaseMetrics<'_>) -> Option<u64>;

impl Number {
    /// Writes nothing if no database knows the number.
    fn write(&self, f: &mut Formatter<'_>, databases: &[DatabaseMetrics<'_>]) -> fmt::Result {
        let name = format!("slate_{}{}", self.name, self.ending);
        let values = databases.iter().filter_map(|database| Some((database.labels(), (self.read)(database)?)));
        for (number, (labels, value)) in values.enumerate() {
            if number == 0 {
                header(f, &name, self.kind, self.help)?;
            }
            writeln!(f, "{name}{labels} {value}")?;
        }
        Ok(())
    }
}

const fn counter(name: &'static str, help: &'static str, read: Read) -> Number {
    Number { name, kind: "counter", ending: "_total", help, read }
}

const fn gauge(name: &'static str, help: &'static str, read: Read) -> Number {
    Number { name, kind: "gauge", ending: "", help, read }
}

const NUMBERS: [Number; 22] = [
    counter("rows_returned", "Rows that reads returned.", |of| Some(of.metrics.rows_returned)),
    counter("bytes_returned", "Bytes of the rows that callers read.", |of| Some(of.metrics.bytes_returned)),
    counter("documents_written", "Documents inserted, changed or deleted.", |of| Some(of.metrics.documents_written)),
    counter("keys_examined", "Keys that plans read.", |of| Some(of.metrics.keys_examined)),
    counter("documents_examined", "Documents that plans read.", |of| Some(of.metrics.documents_examined)),
    counter("commits", "Successful commits.", |of| Some(of.metrics.commits())),
    counter("conflicts", "Operations and commits that met a conflict.", |of| Some(of.metrics.conflicts)),
    counter("retries", "Attempts that followed a conflict.", |of| Some(of.metrics.retries)),
    counter("cache_hits", "Reads by key that the cache answered.", |of| Some(of.metrics.cache_hits)),
    counter("cache_misses", "Reads by key that the cache did not answer.", |of| Some(of.metrics.cache_misses)),
    counter("catalog_reads", "Reads of the list of collections and indexes.", |of| Some(of.metrics.catalog_reads)),
    counter("spills", "Sorted runs written to temporary files.", |of| Some(of.metrics.spills)),
    counter("spilled_bytes", "Bytes written to temporary files.", |of| Some(of.metrics.spilled_bytes)),
    counter("storage_read_bytes", "Bytes that the store read from its files.", |of| of.metrics.storage_bytes),
    counter("round_trips", "Round trips to the machines of a store on a network.", |of| of.metrics.round_trips),
    counter("requests", "Requests to the machines of a store on a network.", |of| of.metrics.requests),
    gauge("disk_bytes", "Bytes of all files.", |of| of.size?.on_disk),
    gauge("free_bytes", "Bytes of free space within the files.", |of| of.size?.free),
    gauge("data_bytes", "Bytes of keys and values, without storage overhead.", |of| of.size?.data),
    gauge("memory_bytes", "Bytes of main memory that hold or cache data.", |of| of.size?.in_memory),
    gauge("oldest_snapshot_seconds", "Age of the oldest snapshot that does not show the last commit.", |of| {
        Some(of.metrics.oldest_snapshot.map_or(0, |oldest| oldest.age.as_secs()))
    }),
    gauge("oldest_snapshot_held_bytes", "Bytes that the oldest snapshot retains.", |of| {
        of.metrics.oldest_snapshot?.held_bytes
    }),
];
