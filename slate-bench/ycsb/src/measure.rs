//! Counts and latencies of one measurement.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::Error;

/// The latencies of the operations of one connection, or of several together.
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    /// Creates an empty histogram of latencies: up to a minute, with three significant digits.
    pub(crate) fn new() -> Result<Self, Error> {
        Ok(Self(Histogram::new_with_bounds(1, 60_000_000_000, 3)?))
    }

    /// Records an operation that began at `begin`.
    pub(crate) fn record(&mut self, begin: Instant) {
        self.0.saturating_record(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn add(&mut self, other: &Self) -> Result<(), Error> {
        Ok(self.0.add(&other.0)?)
    }

    /// Prints the measurement as one line of JSON: operations a second, latencies in microseconds.
    pub(crate) fn print(&self, name: &str, workload: &str, connections: u32, elapsed: Duration) {
        let micros = |nanos: u64| (nanos as f64) / 1000.0;
        let line: Value = json!({
            "name": name,
            "workload": workload,
            "connections": connections,
            "operations": self.0.len(),
            "per_second": (self.0.len() as f64 / elapsed.as_secs_f64()).round(),
            "p50_us": micros(self.0.value_at_quantile(0.50)),
            "p99_us": micros(self.0.value_at_quantile(0.99)),
            "max_us": micros(self.0.max()),
        });
        println!("{line}");
    }
}
