use slate_query::raw::SmallBytes;

/// A range of keys from `start` (inclusive) to `end` (exclusive; `None` for no end).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) start: SmallBytes,
    pub(crate) end: Option<SmallBytes>,
}

impl KeyRange {
    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// Returns whether it contains every key.
    pub(crate) fn is_all(&self) -> bool {
        self.start.is_empty() && self.end.is_none()
    }
}
