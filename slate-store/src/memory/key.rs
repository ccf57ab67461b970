use std::{cmp::Ordering, sync::Arc};

use equivalent::{Comparable, Equivalent};

/// The longest key that lies in the tree's node itself. With its length and the tag that makes 32 bytes, and an index key
/// of one value (9 bytes) with an ObjectId behind it (13) has room to spare.
const INLINE: usize = 30;

/// A key in 32 bytes: short ones in place, so that a search touches the node and nothing else; longer ones behind a
/// counted pointer.
#[derive(Clone, Debug)]
pub(super) enum Key {
    Inline(u8, [u8; INLINE]),
    Shared(Arc<[u8]>),
}

impl Key {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut inline = [0; INLINE];
        match (inline.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(bytes);
                Self::Inline(len, inline)
            }
            _ => Self::Shared(bytes.into()),
        }
    }

    #[inline]
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Inline(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Ord for Key {
    /// As their bytes compare. Keys in place are compared by words, which is several times as quick as by calling out to
    /// compare slices: behind its last byte a key is filled up with zeros, so only where two keys differ in zeros at
    /// their ends do their lengths decide.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Inline(len, bytes), Self::Inline(other_len, other)) => {
                let order = word::<0>(bytes).cmp(&word::<0>(other));
                let order = order.then_with(|| word::<1>(bytes).cmp(&word::<1>(other)));
                let order = order.then_with(|| word::<2>(bytes).cmp(&word::<2>(other)));
                let order = order.then_with(|| word::<3>(bytes).cmp(&word::<3>(other)));
                order.then_with(|| len.cmp(other_len))
            }
            _ => self.as_slice().cmp(other.as_slice()),
        }
    }
}

/// Where the words of a key in place begin; the last two overlap.
const WORDS: [usize; 4] = [0, 8, 16, INLINE - 8];

/// The word of that number. The number is a constant so that nothing is left of the bounds' checks.
#[inline]
fn word<const NUMBER: usize>(bytes: &[u8; INLINE]) -> u64 {
    let rest = WORDS.get(NUMBER).and_then(|at| bytes.get(*at..));
    rest.and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_be_bytes(*word))
}

/// A key to be looked for: its words in registers, and no copy of it.
pub(super) struct Sought<'k> {
    words: [u64; WORDS.len()],
    bytes: &'k [u8],
}

impl<'k> From<&'k Key> for Sought<'k> {
    #[inline]
    fn from(key: &'k Key) -> Self {
        match key {
            Key::Inline(_, bytes) => {
                let words = [word::<0>(bytes), word::<1>(bytes), word::<2>(bytes), word::<3>(bytes)];
                Self { words, bytes: key.as_slice() }
            }
            Key::Shared(bytes) => Self::new(bytes),
        }
    }
}

impl<'k> Sought<'k> {
    #[inline]
    pub(super) fn new(bytes: &'k [u8]) -> Self {
        let [first, second, third, fourth] = WORDS;
        let words = [
            padded_word(bytes, first),
            padded_word(bytes, second),
            padded_word(bytes, third),
            padded_word(bytes, fourth),
        ];
        Self { words, bytes }
    }
}

impl Comparable<Key> for Sought<'_> {
    /// As their bytes compare: see [`Key::cmp`]. A longer key than those in place is above any that its first bytes are.
    #[inline]
    fn compare(&self, key: &Key) -> Ordering {
        match key {
            Key::Inline(len, bytes) => {
                let [first, second, third, fourth] = &self.words;
                let order = first.cmp(&word::<0>(bytes));
                let order = order.then_with(|| second.cmp(&word::<1>(bytes)));
                let order = order.then_with(|| third.cmp(&word::<2>(bytes)));
                let order = order.then_with(|| fourth.cmp(&word::<3>(bytes)));
                order.then_with(|| self.bytes.len().cmp(&usize::from(*len)))
            }
            Key::Shared(bytes) => compare_long(self.bytes, bytes),
        }
    }
}

impl Equivalent<Key> for Sought<'_> {
    #[inline]
    fn equivalent(&self, key: &Key) -> bool {
        self.compare(key) == Ordering::Equal
    }
}

/// Apart, so that what is done for keys in place stays small enough to be inlined.
#[cold]
fn compare_long(bytes: &[u8], other: &[u8]) -> Ordering {
    bytes.cmp(other)
}

/// The eight bytes from `at` on, filled up with zeros.
#[inline]
fn padded_word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    match (rest.first_chunk(), bytes.last_chunk()) {
        (Some(word), _) => u64::from_be_bytes(*word),
        // The last eight bytes, without those that lie before `at`.
        (None, Some(last)) if !rest.is_empty() => u64::from_be_bytes(*last) << (8 * (8 - rest.len())),
        (None, Some(_)) => 0,
        (None, None) => rest.iter().zip([56, 48, 40, 32, 24, 16, 8, 0]).map(|(byte, by)| u64::from(*byte) << by).sum(),
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Key {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_takes_32_bytes() {
        assert_eq!(size_of::<Key>(), 32);
    }

    #[test]
    fn keys_keep_their_bytes_and_their_order_across_the_inline_limit() {
        let long: Vec<u8> = (0..64).collect();
        let mut keys: Vec<Key> = (0..=64).map(|len| Key::new(&long[..len])).collect();
        for (len, key) in keys.iter().enumerate() {
            assert_eq!(key.as_slice(), &long[..len]);
            assert_eq!(matches!(key, Key::Inline(..)), len <= INLINE);
        }
        // A key may end in zeros.
        keys.push(Key::new(&[0, 1, 0]));
        keys.push(Key::new(&[0, 1, 0, 0]));
        keys.sort();
        assert!(keys.windows(2).all(|pair| pair[0].as_slice() < pair[1].as_slice()));
        keys.retain(|key| key.as_slice().last() != Some(&0) || key.as_slice().len() < 2);
        keys.reverse();
        keys.sort();
        assert!(keys.iter().enumerate().all(|(len, key)| key.as_slice().len() == len));
    }

    #[test]
    fn a_key_that_is_sought_compares_as_its_bytes_do() {
        let mut all: Vec<Vec<u8>> = Vec::new();
        for len in [0, 1, 2, 6, 7, 8, 9, 15, 16, 17, 21, 22, 23, 24, 25, 29, 30, 31, 32, 40] {
            for (fill, last) in [(0, 0), (0, 1), (7, 7), (7, 0), (7, 255), (255, 255)] {
                let mut key = vec![fill; len];
                if let Some(byte) = key.last_mut() {
                    *byte = last;
                }
                all.push(key);
            }
        }
        for sought in &all {
            for key in &all {
                let found = Sought::new(sought).compare(&Key::new(key));
                assert_eq!(found, sought.cmp(key), "{sought:?} and {key:?}");
            }
        }
    }
}
