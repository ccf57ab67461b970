//! Chooses the record of an operation, as YCSB does: popular records are scattered over the keys, or are the latest
//! ones.

use std::sync::atomic::{AtomicU64, Ordering};

use rand::{Rng, distr::Distribution, rngs::SmallRng};
use rand_distr::Zipf;

use crate::Error;

/// YCSB's exponent of popularity.
const EXPONENT: f64 = 0.99;

/// The existing records, numbered from 0, and the distribution of their popularity. Inserts increase the count.
pub(crate) struct Keys {
    count: AtomicU64,
    popularity: Zipf<f64>,
}

impl Keys {
    pub(crate) fn new(count: u64) -> Result<Self, Error> {
        Ok(Self { count: AtomicU64::new(count), popularity: Zipf::new(count as f64, EXPONENT)? })
    }

    /// Returns a record, popular ones more often.
    pub(crate) fn popular(&self, random: &mut SmallRng) -> u64 {
        scatter(self.rank(random)) % self.count.load(Ordering::Relaxed)
    }

    /// Returns a record, later ones more often.
    pub(crate) fn latest(&self, random: &mut SmallRng) -> u64 {
        self.count.load(Ordering::Relaxed).saturating_sub(1 + self.rank(random))
    }

    /// Returns the number of a new record.
    pub(crate) fn insert(&self) -> u64 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a rank from 0, the most popular.
    fn rank(&self, random: &mut SmallRng) -> u64 {
        self.popularity.sample(random) as u64 - 1
    }
}

/// Returns the `_id` of a record. The `_id`s of consecutive numbers are far apart in key order.
pub(crate) fn key(number: u64) -> String {
    format!("user{:020}", scatter(number))
}

/// Returns a number between 1 and 100, the length of a scan.
pub(crate) fn scan_length(random: &mut SmallRng) -> i64 {
    random.random_range(1..=100)
}

/// Mixes the bits of a number, without collisions (the finalizer of SplitMix64).
fn scatter(number: u64) -> u64 {
    let mixed = (number.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
