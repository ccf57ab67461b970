/// What a transaction wrote, as the cache of rows knows it.
pub(super) enum Written {
    /// The keys of these hashes.
    Keys(Vec<u64>),
    /// Ranges, of which nobody knows what was in them.
    Any,
}

impl Default for Written {
    fn default() -> Self {
        Self::Keys(Vec::new())
    }
}

/// More keys than the cache has rows, as a rule, are as good as any: 2 MiB of hashes.
const MOST: usize = 1 << 18;

impl Written {
    pub(super) fn note(&mut self, hash: u64) {
        match self {
            Self::Keys(hashes) if hashes.len() == MOST => *self = Self::Any,
            Self::Keys(hashes) => hashes.push(hash),
            Self::Any => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_kept_or_counts_as_any() {
        let mut written = Written::default();
        (0..7).for_each(|hash| written.note(hash));
        assert!(matches!(&written, Written::Keys(hashes) if *hashes == (0..7).collect::<Vec<_>>()));
        (7..u64::try_from(MOST).unwrap()).for_each(|hash| written.note(hash));
        assert!(matches!(&written, Written::Keys(hashes) if hashes.len() == MOST));
        written.note(0);
        assert!(matches!(written, Written::Any));
        written.note(0);
        assert!(matches!(written, Written::Any));
    }
}
