use std::{
    borrow::Borrow,
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
    sync::Arc,
};

/// Immutable bytes. Up to 22 bytes are stored inline, so that creating and cloning most values and keys does not
/// allocate.
#[derive(Clone)]
pub struct SmallBytes(Repr);

#[derive(Clone)]
enum Repr {
    Inline(u8, [u8; INLINE]),
    /// Shared by all clones.
    Shared(Arc<[u8]>),
}

/// The number of inline bytes. Together with the length and the tag they take the size of a `Vec`. The key of an
/// ObjectId, of a number, or of a string of 20 bytes fits.
const INLINE: usize = 22;

impl SmallBytes {
    /// Concatenates the parts.
    pub fn concat(parts: &[&[u8]]) -> Self {
        let mut inline = [0; INLINE];
        let mut length = 0;
        for part in parts {
            let end = length + part.len();
            match (inline.get_mut(length..end), *part) {
                // Type bytes and terminators, which are cheaper to store than to copy.
                (Some([place]), [byte]) => *place = *byte,
                (Some(place), part) => place.copy_from_slice(part),
                (None, _) => {}
            }
            length = end;
        }
        match u8::try_from(length) {
            Ok(short) if length <= INLINE => Self(Repr::Inline(short, inline)),
            _ => Self::concat_shared(parts, length),
        }
    }

    #[cold]
    fn concat_shared(parts: &[&[u8]], length: usize) -> Self {
        // Starts with zeros so that each part is copied once, into its final place.
        let mut shared: Arc<[u8]> = std::iter::repeat_n(0, length).collect();
        let (bytes, mut end) = (Arc::get_mut(&mut shared).unwrap_or_default(), 0);
        for part in parts {
            let start = end;
            end += part.len();
            if let Some(place) = bytes.get_mut(start..end) {
                place.copy_from_slice(part);
            }
        }
        Self(Repr::Shared(shared))
    }

    /// Returns how many of the bytes are on the heap: all or none.
    #[inline]
    pub(super) fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Inline(..) => 0,
            Repr::Shared(bytes) => bytes.len(),
        }
    }

    /// Returns the text that the bytes were copied from; an empty one if they are not UTF-8.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self).unwrap_or_default()
    }

    /// Returns the bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline(length, bytes) => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Repr::Shared(bytes) => bytes,
        }
    }
}

impl Default for SmallBytes {
    fn default() -> Self {
        Self(Repr::Inline(0, [0; INLINE]))
    }
}

impl Deref for SmallBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl From<&[u8]> for SmallBytes {
    fn from(bytes: &[u8]) -> Self {
        Self::concat(&[bytes])
    }
}

impl<const N: usize> From<[u8; N]> for SmallBytes {
    fn from(bytes: [u8; N]) -> Self {
        Self::concat(&[&bytes])
    }
}

impl From<Vec<u8>> for SmallBytes {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() <= INLINE { bytes.as_slice().into() } else { Self(Repr::Shared(bytes.into())) }
    }
}

impl PartialEq for SmallBytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SmallBytes {}

impl Borrow<[u8]> for SmallBytes {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl Hash for SmallBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for SmallBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_bytes_are_as_large_as_a_vec() {
        assert_eq!(size_of::<SmallBytes>(), size_of::<Vec<u8>>());
    }

    #[test]
    fn small_bytes_equal_their_source_at_every_length() {
        let long: Vec<u8> = (0..40).collect();
        for length in 0..=long.len() {
            let bytes = &long[..length];
            let made = [
                SmallBytes::from(bytes),
                bytes.to_vec().into(),
                SmallBytes::concat(&[&bytes[..length / 2], &bytes[length / 2..]]),
            ];
            for made in made {
                assert_eq!(*made, *bytes);
                assert_eq!(matches!(made.0, Repr::Inline(..)), length <= INLINE);
            }
        }
    }
}
