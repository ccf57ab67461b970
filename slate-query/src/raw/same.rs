/// Whether two texts are the same. Short ones are compared by two words that may overlap, which takes less than a call to
/// compare them does; and without a branch on what cannot be foreseen, which is whether they are.
#[inline]
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    match b.len() {
        // Values without bytes are common, and a call to compare them is dear where one of the two lies nowhere.
        0 => a.is_empty(),
        1..=3 => a.iter().eq(b),
        4..=7 => (a.len() == b.len()) & ends(a, b, u32::from_le_bytes),
        8..=16 => (a.len() == b.len()) & ends(a, b, u64::from_le_bytes),
        17..=32 => (a.len() == b.len()) & ends(a, b, u128::from_le_bytes),
        _ => a == b,
    }
}

/// Whether the first and the last `N` bytes are the same.
#[inline]
fn ends<const N: usize, W: PartialEq>(a: &[u8], b: &[u8], word: impl Fn([u8; N]) -> W) -> bool {
    match (a.first_chunk(), b.first_chunk(), a.last_chunk(), b.last_chunk()) {
        (Some(a_first), Some(b_first), Some(a_last), Some(b_last)) => {
            (word(*a_first) == word(*b_first)) & (word(*a_last) == word(*b_last))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn texts_of_every_length_are_told_apart() {
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
