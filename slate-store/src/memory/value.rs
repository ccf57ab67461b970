use std::{ops::Deref, sync::Arc};

/// A value in 16 bytes.
#[derive(Clone)]
pub(super) enum Value {
    /// Up to [`INLINE`] bytes, such as those of an index entry: neither allocated nor reference-counted.
    Inline(Inline),
    /// Shared by all versions of the tree that contain it and by readers that hold it.
    Shared(Arc<[u8]>),
}

/// Maximum length of an inline value in bytes. With their length they take eight bytes, as much as the length in the pointer to a shared value.
const INLINE: usize = 7;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Inline {
    len: u8,
    bytes: [u8; INLINE],
}

impl Inline {
    /// Returns the value with these bytes; `None` if it is too long.
    pub(super) fn new(bytes: &[u8]) -> Option<Self> {
        let mut inline = [0; INLINE];
        inline.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { len: u8::try_from(bytes.len()).ok()?, bytes: inline })
    }
}

impl Value {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Inline::new(bytes).map_or_else(|| Self::Shared(bytes.into()), Self::Inline)
    }

    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Prefetches a shared value and, as they are stored before the bytes, its reference counts.
    #[inline]
    pub(super) fn prefetch(&self) {
        if let Self::Shared(bytes) = self {
            crate::prefetch::prefetch(bytes);
        }
    }

    pub(super) fn shared(&self) -> Arc<[u8]> {
        match self {
            Self::Inline(_) => (**self).into(),
            Self::Shared(bytes) => Arc::clone(bytes),
        }
    }
}

impl Deref for Value {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Inline(Inline { len, bytes }) => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Shared(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_16_bytes_and_keeps_its_bytes_across_the_inline_limit() {
        assert_eq!(size_of::<Value>(), 16);
        let long: Vec<u8> = (0..20).collect();
        for len in 0..=20 {
            let value = Value::new(&long[..len]);
            assert_eq!((&*value, &*value.shared()), (&long[..len], &long[..len]));
            assert_eq!(value.is_shared(), len > INLINE);
        }
    }
}
