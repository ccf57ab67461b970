//! A seeded random number generator. The same seed gives the same data on every machine and in every version of this
//! crate.

/// SplitMix64, by Sebastiano Vigna (public domain, <https://prng.di.unimi.it/splitmix64.c>).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: u64,
}

/// The golden ratio in 64 bits, SplitMix64's step.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Rng {
    /// Creates the stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Creates the stream of a seed and a purpose. Streams of different purposes are independent.
    pub fn of(seed: u64, parts: &[u64]) -> Self {
        let mut state = mix(seed);
        for part in parts {
            state = mix(state ^ mix(part.wrapping_add(STEP)));
        }
        Self { state }
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// Returns a uniformly distributed number below `bound`, which must not be 0 (bias at most `bound` / 2⁶⁴).
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.bits()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or_default()
    }

    /// Returns `true` with a probability of `chance` percent.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// Returns a random one of several items; the default value if there are none.
    pub fn pick<T: Copy + Default>(&mut self, from: &[T]) -> T {
        let place = self.below(crate::number::count(from.len()));
        usize::try_from(place).ok().and_then(|place| from.get(place)).copied().unwrap_or_default()
    }

    /// Returns `many` distinct numbers below `bound` in random order, or all of them if there are fewer.
    pub fn distinct(&mut self, many: usize, bound: u64) -> Vec<u64> {
        // Floyd's algorithm returns a set; the shuffle orders it.
        let many = many.min(usize::try_from(bound).unwrap_or(usize::MAX));
        let mut chosen = std::collections::HashSet::with_capacity(many);
        let mut numbers = Vec::with_capacity(many);
        for last in bound - crate::number::count(many)..bound {
            let candidate = self.below(last + 1);
            let number = if chosen.insert(candidate) { candidate } else { last };
            chosen.insert(number);
            numbers.push(number);
        }
        self.shuffle(&mut numbers);
        numbers
    }

    /// Shuffles the items (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(crate::number::count(last) + 1);
            items.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}

/// SplitMix64's finalizer: every input bit affects every output bit.
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_splitmix64s() {
        // First outputs of the reference implementation for the seed 1234567.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.bits(), 6_457_827_717_110_365_317);
        assert_eq!(rng.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut rng = Rng::new(1);
        let mut seen = [0_u32; 7];
        for _ in 0..7_000 {
            seen[usize::try_from(rng.below(7)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&times| (850..1_150).contains(&times)), "{seen:?}");
    }

    #[test]
    fn distinct_numbers_are_distinct_and_complete() {
        for (many, bound) in [(0, 5), (3, 5), (5, 5), (9, 5), (100, 1_000_000)] {
            let mut numbers = Rng::new(7).distinct(many, bound);
            assert_eq!(numbers.len(), many.min(usize::try_from(bound).unwrap()));
            assert!(numbers.iter().all(|&number| number < bound));
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), many.min(usize::try_from(bound).unwrap()));
        }
    }

    #[test]
    fn streams_of_different_parts_differ() {
        let first = |parts: &[u64]| Rng::of(1, parts).bits();
        assert_ne!(first(&[0, 1]), first(&[1, 0]));
        assert_ne!(first(&[0]), first(&[0, 0]));
        assert_eq!(first(&[3, 4]), first(&[3, 4]));
    }
}
