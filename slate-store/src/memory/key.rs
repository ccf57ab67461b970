use std::{cmp::Ordering, sync::Arc};

/// Maximum length of an inline key: with the length and the tag, it takes 32 bytes. An index key of one number (9 bytes) and an `ObjectId` (13
/// bytes) are shorter.
const INLINE: usize = 30;

/// A key in 32 bytes. A short key is stored inline, so that a search touches no other memory; a longer one is shared.
#[derive(Clone, Debug)]
pub(super) enum Key {
    /// The length and the bytes, padded with zeros.
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

/// The offsets of the four words of an inline key; the last two overlap.
const WORDS: [usize; 4] = [0, 8, 16, INLINE - 8];

/// Returns a word of an inline key. Its number is a constant so that the compiler removes the bounds checks.
#[inline]
fn word<const NUMBER: usize>(bytes: &[u8; INLINE]) -> u64 {
    let rest = WORDS.get(NUMBER).and_then(|at| bytes.get(*at..));
    rest.and_then(|rest| rest.first_chunk()).map_or(0, |word| u64::from_be_bytes(*word))
}

/// A key to search for: borrowed, with its first bytes loaded as four words, so that comparing it with an inline key compares
/// words instead of calling `memcmp`.
pub(super) struct Probe<'k> {
    words: [u64; WORDS.len()],
    bytes: &'k [u8],
}

impl<'k> From<&'k Key> for Probe<'k> {
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

impl<'k> Probe<'k> {
    #[inline]
    pub(super) fn new(bytes: &'k [u8]) -> Self {
        Self { words: WORDS.map(|at| padded_word(bytes, at)), bytes }
    }

    pub(super) fn as_slice(&self) -> &'k [u8] {
        self.bytes
    }

    /// Compares the keys' bytes. Inline keys are padded with zeros, so if all words are equal, one key is the other followed by zeros, and the
    /// lengths decide. A longer key compares the same way: it is greater than any inline key that is its prefix.
    #[inline]
    pub(super) fn compare(&self, key: &Key) -> Ordering {
        match key {
            Key::Inline(len, bytes) => {
                let [first, second, third, fourth] = &self.words;
                let order = first.cmp(&word::<0>(bytes));
                let order = order.then_with(|| second.cmp(&word::<1>(bytes)));
                let order = order.then_with(|| third.cmp(&word::<2>(bytes)));
                let order = order.then_with(|| fourth.cmp(&word::<3>(bytes)));
                order.then_with(|| self.bytes.len().cmp(&usize::from(*len)))
            }
            Key::Shared(bytes) => compare_shared(self.bytes, bytes),
        }
    }
}

/// A separate function, so that comparing inline keys stays small enough to be inlined.
#[cold]
fn compare_shared(bytes: &[u8], other: &[u8]) -> Ordering {
    bytes.cmp(other)
}

/// Returns the eight bytes from `at` on, padded with zeros.
#[inline]
fn padded_word(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    match (rest.first_chunk(), bytes.last_chunk()) {
        (Some(word), _) => u64::from_be_bytes(*word),
        // The last eight bytes, without those before `at`.
        (None, Some(last)) if !rest.is_empty() => u64::from_be_bytes(*last) << (8 * (8 - rest.len())),
        (None, Some(_)) => 0,
        (None, None) => rest.iter().zip([56, 48, 40, 32, 24, 16, 8, 0]).map(|(byte, by)| u64::from(*byte) << by).sum(),
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        Probe::from(self).compare(other)
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
        // Keys that end in zeros.
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
    fn a_probe_compares_as_its_bytes_do() {
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
                let found = Probe::new(sought).compare(&Key::new(key));
                assert_eq!(found, sought.cmp(key), "{sought:?} and {key:?}");
            }
        }
    }
}
