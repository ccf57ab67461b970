use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::atomic::{self, AtomicU8},
};

use super::stored::mark;

/// A field's name to look documents up by, again and again.
///
/// It remembers where it was found last: most documents of a collection have a field at the same place among theirs.
pub struct FieldName {
    text: Box<str>,
    mark: u8,
    /// The field's number in the document that it was last found in. A hint: any number is right, and from whichever thread.
    number: AtomicU8,
}

impl FieldName {
    /// A name to look for.
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), mark: mark(text.as_bytes()), number: AtomicU8::new(0) }
    }

    /// The name.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    #[inline]
    pub(super) fn mark(&self) -> u8 {
        self.mark
    }

    /// The number of the field that is to be looked at first.
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
        Self::new(&self.text)
    }
}

impl PartialEq for FieldName {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for FieldName {}

impl PartialOrd for FieldName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FieldName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl Hash for FieldName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}
