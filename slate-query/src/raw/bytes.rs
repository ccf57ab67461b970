//! Operations on short byte strings by machine words, where a call to `memcmp` would cost more than the comparison.

/// Returns whether two byte strings are equal. Short ones are compared as two words that may overlap, without a branch
/// that depends on their contents.
#[inline]
pub fn same(a: &[u8], b: &[u8]) -> bool {
    match b.len() {
        // Empty values are common, and comparing them must not cost a call.
        0 => a.is_empty(),
        1..=3 => match (a, b) {
            ([a], [b]) => a == b,
            ([a, a_last], [b, b_last]) => (a == b) & (a_last == b_last),
            ([a, a_middle, a_last], [b, b_middle, b_last]) => (a == b) & (a_middle == b_middle) & (a_last == b_last),
            _ => false,
        },
        4..=7 => (a.len() == b.len()) & ends(a, b, u32::from_le_bytes),
        8..=16 => (a.len() == b.len()) & ends(a, b, u64::from_le_bytes),
        17..=32 => (a.len() == b.len()) & ends(a, b, u128::from_le_bytes),
        _ => a == b,
    }
}

/// Returns whether the first and the last `N` bytes are equal.
#[inline]
fn ends<const N: usize, W: PartialEq>(a: &[u8], b: &[u8], word: impl Fn([u8; N]) -> W) -> bool {
    match (a.first_chunk(), b.first_chunk(), a.last_chunk(), b.last_chunk()) {
        (Some(a_first), Some(b_first), Some(a_last), Some(b_last)) => {
            (word(*a_first) == word(*b_first)) & (word(*a_last) == word(*b_last))
        }
        _ => false,
    }
}

/// Returns how many bytes at the start of both are equal.
#[inline]
pub(crate) fn common_start(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let blocks = a.as_chunks::<BLOCK>().0.iter().zip(b.as_chunks::<BLOCK>().0);
    let start = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = a.iter().zip(b).skip(start);
    start + rest.take_while(|(a, b)| a == b).count()
}

/// Returns the first eight bytes as a big-endian number; fewer bytes as a shorter number.
#[inline]
pub(crate) fn big_endian(bytes: &[u8]) -> u64 {
    if let Some(all) = bytes.first_chunk() {
        return u64::from_be_bytes(*all);
    }
    // Two words that may overlap. Both put the shared bytes at the same bits.
    let but = |width: usize| u8::BITS as usize * (bytes.len() - width);
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u32::from_be_bytes(*first)) << but(4) | u64::from(u32::from_be_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return u64::from(u16::from_be_bytes(*first)) << but(2) | u64::from(u16::from_be_bytes(*last));
    }
    bytes.first().copied().map_or(0, u64::from)
}

/// Returns the first eight bytes, zero-padded, as a number. The numbers sort like the bytes.
#[inline]
pub fn leading(bytes: &[u8]) -> u64 {
    let filled_up = size_of::<u64>().saturating_sub(bytes.len());
    // The shift of an empty slice would overflow; its value is zero anyway.
    big_endian(bytes) << (u8::BITS as usize * filled_up % u64::BITS as usize)
}

/// Sets the highest bit of each byte of the word that is below `limit`, which is at most 0x80. Only the lowest set bit
/// is reliable (Warren, Hacker's Delight, 6-1).
#[inline]
pub(crate) fn below(word: [u8; 8], limit: u8) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(word);
    word.wrapping_sub(ONES * u64::from(limit)) & !word & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::{below, big_endian, common_start, leading, same};

    #[test]
    fn the_common_start_ends_at_the_first_difference() {
        let bytes: Vec<u8> = (0..100).collect();
        for length in 0..=bytes.len() {
            assert_eq!(common_start(&bytes, &bytes[..length]), length);
            for at in 0..length {
                let mut other = bytes[..length].to_vec();
                other[at] = 200;
                assert_eq!((common_start(&other, &bytes), common_start(&bytes, &other)), (at, at));
            }
        }
    }

    #[test]
    fn leading_bytes_are_a_number_with_the_same_order() {
        let bytes: Vec<u8> = (1..=10).collect();
        for length in 0..=bytes.len() {
            let mut filled_up = [0; 8];
            let kept = length.min(8);
            filled_up[..kept].copy_from_slice(&bytes[..kept]);
            assert_eq!(leading(&bytes[..length]), u64::from_be_bytes(filled_up), "{length} bytes");
            let number = bytes[..kept].iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
            assert_eq!(big_endian(&bytes[..length]), number, "{length} bytes");
        }
    }

    #[test]
    fn the_first_byte_below_a_limit_is_found() {
        for limit in [1, 3, 0x80] {
            for at in 0..8 {
                for byte in [0, 1, 2, 3, 0x7f, 0x80, 0x82, 0xff] {
                    for other in [0x80, 0xff] {
                        let mut word = [other; 8];
                        word[at] = byte;
                        let first = (byte < limit).then_some(at);
                        let found = below(word, limit);
                        assert_eq!(
                            (found != 0).then(|| found.trailing_zeros() as usize / 8),
                            first,
                            "{word:x?} {limit}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn texts_of_every_length_are_distinguished() {
        let text: Vec<u8> = (0..40).collect();
        for length in 0..=text.len() {
            let a = &text[..length];
            let copy = a.to_vec();
            assert!(same(a, &copy));
            assert!(!same(a, &text[..length.saturating_sub(1)]) || length == 0);
            for at in 0..length {
                let mut other = a.to_vec();
                other[at] ^= 0x80;
                assert!(!same(a, &other), "{length} {at}");
            }
        }
    }
}
