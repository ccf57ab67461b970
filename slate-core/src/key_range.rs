use slate_query::raw::SmallBytes;
use slate_store::Bounds;

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

    /// Returns the range as bounds. A range from the least key on has no start, because a store may know the size of a whole
    /// keyspace.
    pub(crate) fn bounds(&self) -> Bounds<'_> {
        let start = Some(self.start.as_slice()).filter(|start| !start.is_empty());
        Bounds { start, end: self.end.as_deref() }
    }

    /// Returns whether the range contains every key.
    pub(crate) fn is_all(&self) -> bool {
        self.start.is_empty() && self.end.is_none()
    }
}
