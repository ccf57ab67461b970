use std::{ops::Deref, sync::Arc};

/// A value, and the identity of the put that made it: no two transactions make the same.
#[derive(Clone)]
pub(super) enum Value {
    /// Few bytes or none, as the entries of an index have, lie in place: nothing is allocated or counted.
    Inline(Inline),
    /// Shared by every version of the tree that holds it. Its address tells it from others.
    Shared(Arc<[u8]>),
}

/// The number of a transaction.
pub(super) type Stamp = u64;

impl Value {
    pub(super) fn new(bytes: &[u8], stamp: Stamp) -> Self {
        Inline::new(bytes, stamp).map_or_else(|| Self::Shared(bytes.into()), Self::Inline)
    }

    /// Whether the same transaction put both.
    pub(super) fn is_same_put(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Inline(value), Self::Inline(other)) => value == other,
            (Self::Shared(bytes), Self::Shared(other)) => Arc::ptr_eq(bytes, other),
            (Self::Inline(_), Self::Shared(_)) | (Self::Shared(_), Self::Inline(_)) => false,
        }
    }

    /// Whether its bytes lie elsewhere, where it is counted who shares them.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(_))
    }

    /// Asks for where it is counted who shares it: it will be copied soon.
    #[inline]
    pub(super) fn prefetch_count(&self) {
        if let Self::Shared(bytes) = self {
            // The counts stand before the bytes, mostly in the same line.
            branches::prefetch_read_data::<u8, 0>(bytes.as_ptr());
        }
    }

    pub(super) fn shared(&self) -> Arc<[u8]> {
        match self {
            Self::Inline(bytes) => bytes.as_slice().into(),
            Self::Shared(bytes) => Arc::clone(bytes),
        }
    }
}

impl Deref for Value {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Inline(bytes) => bytes.as_slice(),
            Self::Shared(bytes) => bytes,
        }
    }
}

/// Up to three bytes, and the number of the transaction that put them, which tells them from others: all in eight bytes,
/// which is what is left of a [`Value`] beside its pointer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Inline {
    bytes: [u8; MOST],
    /// How many bytes there are, in the two lowest bits; and the number, the lowest byte first.
    rest: [u8; 8 - MOST],
}

const MOST: usize = 3;

impl Inline {
    /// `None` where there are too many bytes; or where the number is too large, which it is after 274 thousand million
    /// transactions.
    fn new(bytes: &[u8], stamp: Stamp) -> Option<Self> {
        let mut inline = [0; MOST];
        inline.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let length = u64::try_from(bytes.len()).ok()?;
        let [rest @ .., 0, 0, 0] = (stamp.checked_mul(4)? | length).to_le_bytes() else { return None };
        Some(Self { bytes: inline, rest })
    }

    #[inline]
    fn as_slice(&self) -> &[u8] {
        let [low, ..] = self.rest;
        self.bytes.get(..usize::from(low & 3)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_16_bytes() {
        assert_eq!(size_of::<Value>(), 16);
    }

    #[test]
    fn a_value_is_told_from_one_of_the_same_bytes() {
        const LARGEST: Stamp = (1 << 38) - 1;
        for bytes in [&b""[..], b"a", b"\0\0\0", b"abc", b"abcd"] {
            for stamp in [0, 1, 1 << 20, LARGEST, LARGEST + 1, Stamp::MAX] {
                let value = Value::new(bytes, stamp);
                assert!(value.is_same_put(&value.clone()));
                assert!(!value.is_same_put(&Value::new(bytes, stamp ^ 1)));
                assert!(!value.is_same_put(&Value::new(bytes, stamp ^ 1 << 37)));
                assert_eq!(&*value, bytes);
                assert_eq!(&*value.shared(), bytes);
                assert_eq!(value.is_shared(), bytes.len() > MOST || stamp > LARGEST);
            }
        }
    }
}
