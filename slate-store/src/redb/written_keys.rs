/// The keys that a transaction wrote, as the cache of rows knows them.
pub(super) enum WrittenKeys {
    /// Those of these hashes.
    Hashed(Vec<u64>),
    /// Ranges, of which nobody knows what was in them.
    Any,
}

impl Default for WrittenKeys {
    fn default() -> Self {
        Self::Hashed(Vec::new())
    }
}

/// More keys than the cache has rows, as a rule, are as good as any: 2 MiB of hashes.
const MOST: usize = 1 << 18;

impl WrittenKeys {
    pub(super) fn note(&mut self, hash: u64) {
        match self {
            Self::Hashed(hashes) if hashes.len() == MOST => *self = Self::Any,
            Self::Hashed(hashes) => hashes.push(hash),
            Self::Any => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_kept_or_counts_as_any() {
        let mut keys = WrittenKeys::default();
        (0..7).for_each(|hash| keys.note(hash));
        assert!(matches!(&keys, WrittenKeys::Hashed(hashes) if *hashes == (0..7).collect::<Vec<_>>()));
        (7..u64::try_from(MOST).unwrap()).for_each(|hash| keys.note(hash));
        assert!(matches!(&keys, WrittenKeys::Hashed(hashes) if hashes.len() == MOST));
        keys.note(0);
        assert!(matches!(keys, WrittenKeys::Any));
        keys.note(0);
        assert!(matches!(keys, WrittenKeys::Any));
    }
}
