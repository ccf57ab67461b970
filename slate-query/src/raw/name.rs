use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::atomic::{self, AtomicU8},
};

use super::{SmallBytes, bytes::same, stored::mark};

/// A field name for repeated lookups.
///
/// It caches the position in the field table at which the field was last found: most documents of a collection have a
/// field at the same position. The cached position is a hint that is verified on use, so any value is correct.
pub struct FieldName {
    text: SmallBytes,
    mark: u8,
    number: AtomicU8,
}

impl FieldName {
    /// Creates the name with the hint "first field".
    pub fn new(text: &str) -> Self {
        Self { text: text.as_bytes().into(), mark: mark(text.as_bytes()), number: AtomicU8::new(0) }
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// Returns the name as UTF-8 bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    #[inline]
    pub(super) fn mark(&self) -> u8 {
        self.mark
    }

    /// Returns the number of the field to look at first.
    #[inline]
    pub(super) fn number(&self) -> usize {
        usize::from(self.number.load(atomic::Ordering::Relaxed))
    }

    pub(super) fn found(&self, number: usize) {
        // A document with a table has at most 255 fields.
        self.number.store(u8::try_from(number).unwrap_or_default(), atomic::Ordering::Relaxed);
    }
}

impl Clone for FieldName {
    fn clone(&self) -> Self {
        let number = AtomicU8::new(self.number.load(atomic::Ordering::Relaxed));
        Self { text: self.text.clone(), mark: self.mark, number }
    }
}

impl PartialEq for FieldName {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.mark == other.mark && same(&self.text, &other.text)
    }
}

impl Eq for FieldName {}

impl Hash for FieldName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.as_slice().hash(state);
    }
}

impl fmt::Debug for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}
