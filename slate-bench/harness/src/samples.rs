//! Measured times of one operation.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::number::{count, float, nanoseconds, ratio, rounded};

/// The times of one operation in nanoseconds, in the order of measurement.
///
/// Serialized as a plain list, so that reports of several rounds can be joined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Samples {
    nanoseconds: Vec<u64>,
}

impl Samples {
    /// Adds a time.
    pub fn push(&mut self, time: Duration) {
        self.nanoseconds.push(nanoseconds(time));
    }

    /// Adds the times of another series of the same operation.
    pub fn extend(&mut self, other: &Self) {
        self.nanoseconds.extend_from_slice(&other.nanoseconds);
    }

    /// Returns the number of times.
    pub fn len(&self) -> usize {
        self.nanoseconds.len()
    }

    /// Returns whether there are no times.
    pub fn is_empty(&self) -> bool {
        self.nanoseconds.is_empty()
    }

    /// Returns the times in the order of measurement.
    pub fn nanoseconds(&self) -> &[u64] {
        &self.nanoseconds
    }

    /// Returns the median, or the mean of the two middle times. Zero without times.
    pub fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    /// Returns the 95th percentile.
    pub fn p95(&self) -> Duration {
        self.quantile(0.95)
    }

    /// Returns the shortest time. Zero without times.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.iter().copied().min().unwrap_or_default())
    }

    /// Returns the longest time. Zero without times.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.iter().copied().max().unwrap_or_default())
    }

    /// Returns the sum of the times.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds.iter().sum())
    }

    /// Returns the interquartile range as a fraction of the median.
    pub fn spread(&self) -> f64 {
        let range = self.quantile(0.75).saturating_sub(self.quantile(0.25));
        ratio(range.as_secs_f64(), self.median().as_secs_f64())
    }

    /// Returns a quantile with linear interpolation (Hyndman and Fan's type 7).
    pub fn quantile(&self, share: f64) -> Duration {
        let mut sorted = self.nanoseconds.clone();
        sorted.sort_unstable();
        let Some(last) = count(sorted.len()).checked_sub(1) else { return Duration::ZERO };
        let place = float(last) * share.clamp(0.0, 1.0);
        let at = |place: f64| {
            usize::try_from(rounded(place)).ok().and_then(|place| sorted.get(place)).copied().map_or(0.0, float)
        };
        let (below, above) = (at(place.floor()), at(place.ceil()));
        Duration::from_nanos(rounded(below + (above - below) * place.fract()))
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        Self { nanoseconds: times.into_iter().map(nanoseconds).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[u64]) -> Samples {
        times.iter().copied().map(Duration::from_nanos).collect()
    }

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(of(&[5, 1, 9]).median(), Duration::from_nanos(5));
        assert_eq!(of(&[9, 1, 5, 7]).median(), Duration::from_nanos(6));
        assert_eq!(of(&[]).median(), Duration::ZERO);
    }

    #[test]
    fn quantiles_lie_between_samples_in_proportion() {
        let hundred: Samples = (1..=101).map(Duration::from_nanos).collect();
        assert_eq!(hundred.p95(), Duration::from_nanos(96));
        assert_eq!(hundred.quantile(0.0), hundred.min());
        assert_eq!(hundred.quantile(1.0), hundred.max());
        assert_eq!(of(&[10, 20]).quantile(0.25), Duration::from_nanos(13));
    }

    #[test]
    fn the_spread_is_that_of_the_middle_half() {
        assert!((of(&[100, 100, 100, 100, 900]).spread() - 0.0).abs() < 1e-9);
        assert!((of(&[80, 90, 100, 110, 120]).spread() - 0.2).abs() < 1e-9);
        assert!((of(&[]).spread() - 0.0).abs() < 1e-9);
    }

    #[test]
    fn json_is_the_list() {
        let samples = of(&[3, 1]);
        let text = serde_json::to_string(&samples).unwrap();
        assert_eq!(text, "[3,1]");
        assert_eq!(serde_json::from_str::<Samples>(&text).unwrap(), samples);
    }
}
