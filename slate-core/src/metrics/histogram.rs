use std::time::Duration;

use super::counters::Counter;

/// Number of buckets. The last but one ends at 2^39 ns, nine minutes.
const BUCKETS: usize = 34;

/// The first bucket contains times below 2^7 ns, 128 ns. Each further bucket ends at twice the time of the one before.
const FIRST_BITS: u32 = 7;

/// Times of calls, in buckets of a logarithmic scale: each ends at twice the time of the one before it, from 128 ns to nine
/// minutes; the last bucket contains longer times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    sum: Duration,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], sum: Duration::ZERO }
    }
}

impl Histogram {
    /// Returns the number of measured calls.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of the times of the measured calls.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns the buckets in order: the time below which the bucket ends, `None` for the last, and the number of calls
    /// in it.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> + '_ {
        self.counts.iter().enumerate().map(|(bucket, count)| (end(bucket), *count))
    }

    /// Returns the end of the bucket that contains the given quantile of the times: 0.5 for the median, 0.99 for the
    /// time that one call in a hundred exceeds. The quantile is between half of the result and the result. Returns
    /// `None` without measured calls, and the start of the last bucket for a quantile in it.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank is rounded; the cast of a float saturates"
        )]
        let rank = ((count as f64 * quantile.clamp(0.0, 1.0)).ceil() as u64).clamp(1, count);
        let mut below = 0;
        let found = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        found.and_then(|bucket| end(bucket).or_else(|| end(bucket.saturating_sub(1))))
    }

    /// Adds the times of a thread.
    pub(super) fn add(&mut self, other: &Timer) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count.get());
        self.sum = self.sum.saturating_add(Duration::from_nanos(other.nanos.get()));
    }
}

/// Returns the time below which a bucket ends; `None` for the last.
fn end(bucket: usize) -> Option<Duration> {
    let bits = FIRST_BITS + u32::try_from(bucket).ok()?;
    (bucket + 1 < BUCKETS).then(|| Duration::from_nanos(1 << bits))
}

/// A histogram to which one thread adds.
#[derive(Debug)]
pub(crate) struct Timer {
    counts: [Counter; BUCKETS],
    nanos: Counter,
}

impl Default for Timer {
    fn default() -> Self {
        Self { counts: std::array::from_fn(|_| Counter::default()), nanos: Counter::default() }
    }
}

impl Timer {
    pub(crate) fn record(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let bits = u64::BITS - nanos.leading_zeros();
        let bucket = usize::try_from(bits.saturating_sub(FIRST_BITS)).unwrap_or(usize::MAX).min(BUCKETS - 1);
        if let Some(count) = self.counts.get(bucket) {
            count.add(1);
        }
        self.nanos.add(nanos);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nanos: &[u64]) -> Histogram {
        let timer = Timer::default();
        nanos.iter().for_each(|nanos| timer.record(Duration::from_nanos(*nanos)));
        let mut histogram = Histogram::default();
        histogram.add(&timer);
        histogram
    }

    #[test]
    fn a_time_is_in_the_bucket_that_ends_above_it() {
        for nanos in [0, 1, 127, 128, 129, 255, 256, 1_000, 1_000_000, (1 << 39) - 1, 1 << 39, u64::MAX] {
            let histogram = of(&[nanos]);
            let (mut start, mut found) = (Some(Duration::ZERO), false);
            for (end, count) in histogram.buckets() {
                let time = Duration::from_nanos(nanos);
                let is_within = start.is_none_or(|start| time >= start) && end.is_none_or(|end| time < end);
                assert_eq!(count, u64::from(is_within), "{nanos} ns, the bucket up to {end:?}");
                found |= is_within;
                start = end;
            }
            assert!(found && histogram.count() == 1);
        }
    }

    #[test]
    fn a_quantile_is_at_most_twice_the_time() {
        let times: Vec<u64> = (1..=1_000).map(|n| n * 1_000).collect();
        let histogram = of(&times);
        assert_eq!(histogram.sum(), Duration::from_micros(500_500));
        for (quantile, exact) in [(0.0, 1), (0.5, 500), (0.99, 990), (1.0, 1_000)] {
            let (found, exact) = (histogram.quantile(quantile).unwrap(), Duration::from_micros(exact));
            assert!(found > exact && found <= exact * 2, "{quantile}: {found:?}");
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
        assert_eq!(of(&[u64::MAX]).quantile(0.5), Some(Duration::from_nanos(1 << 39)));
    }
}
