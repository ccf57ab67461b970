//! Keys and values of the workloads, and the numbers that identify values.

use slate_bench_harness::{Rng, number::count};

const LETTERS: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Entries in key order. The first eight bytes of a value are its number, which identifies it.
pub(crate) struct Entries {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Entries {
    /// Creates `count` entries. Keys have 12 bytes: four constant bytes and an even number, so that there is a free key
    /// between any two. Values have `value_len` bytes, at least eight.
    pub(crate) fn numbered(count: u64, value_len: usize, random: &mut Rng) -> Self {
        let entry = |number| (raw_key(number).to_vec(), value(number, value_len, random));
        Self { entries: (0..count).map(entry).collect() }
    }

    /// Creates `count` entries whose keys and values are 1 to `longest` letters, or fewer entries if keys repeat. Their
    /// values do not start with a number.
    pub(crate) fn of_letters(count: u64, longest: u64, random: &mut Rng) -> Self {
        let mut letters = || {
            let length = 1 + random.below(longest);
            (0..length).map(|_| random.pick(LETTERS)).collect::<Vec<u8>>()
        };
        let mut entries: Vec<(Vec<u8>, Vec<u8>)> = (0..count).map(|_| (letters(), letters())).collect();
        entries.sort_unstable();
        entries.dedup_by(|(key, _), (before, _)| key == before);
        Self { entries }
    }

    pub(crate) fn len(&self) -> u64 {
        count(self.entries.len())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
    }

    /// Returns the bytes of all keys and values.
    pub(crate) fn bytes(&self) -> u64 {
        self.iter().map(|(key, value)| count(key.len() + value.len())).sum()
    }
}

/// Length of the keys of [`Entries::numbered`].
pub(crate) const RAW_KEY: usize = 12;

/// Returns the key of an entry of [`Entries::numbered`].
pub(crate) fn raw_key(number: u64) -> [u8; RAW_KEY] {
    joined(*b"rec\0", (2 * number).to_be_bytes())
}

/// Returns the free key after the key of entry `number`.
pub(crate) fn missing_key(number: u64) -> [u8; RAW_KEY] {
    joined(*b"rec\0", (2 * number + 1).to_be_bytes())
}

/// Returns `number` in eight bytes, followed by random bytes.
pub(crate) fn value(number: u64, len: usize, random: &mut Rng) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    while value.len() < len {
        value.extend_from_slice(&random.bits().to_le_bytes());
    }
    value.truncate(len.max(8));
    value
}

/// Returns the number at the start of a value; `u64::MAX`, which no value has, if it is shorter than eight bytes.
pub(crate) fn number(value: &[u8]) -> u64 {
    value.first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes))
}

fn joined(head: [u8; 4], tail: [u8; 8]) -> [u8; RAW_KEY] {
    let mut key = [0; RAW_KEY];
    for (place, byte) in key.iter_mut().zip(head.into_iter().chain(tail)) {
        *place = byte;
    }
    key
}
