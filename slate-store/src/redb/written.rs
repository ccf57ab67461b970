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

impl Written {
    pub(super) fn note(&mut self, hash: u64) {
        match self {
            Self::Keys(hashes) => hashes.push(hash),
            Self::Any => {}
        }
    }
}
