use std::{ops::Deref, sync::Arc};

/// A value, shared by every version of the tree that holds it, and the identity of the put that made it: no two puts make
/// the same.
#[derive(Clone)]
pub(super) enum Value {
    /// No bytes, as most entries of an index have none: nothing is allocated, and the number of the transaction that put
    /// it tells it from others.
    Empty(Stamp),
    /// Its address tells it from others.
    Shared(Arc<[u8]>),
}

/// The number of a transaction.
pub(super) type Stamp = u64;

impl Value {
    pub(super) fn new(bytes: &[u8], stamp: Stamp) -> Self {
        if bytes.is_empty() { Self::Empty(stamp) } else { Self::Shared(bytes.into()) }
    }

    /// Whether the same put made both.
    pub(super) fn is_same_put(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Empty(stamp), Self::Empty(other)) => stamp == other,
            (Self::Shared(bytes), Self::Shared(other)) => Arc::ptr_eq(bytes, other),
            (Self::Empty(_), Self::Shared(_)) | (Self::Shared(_), Self::Empty(_)) => false,
        }
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
            Self::Empty(_) => Arc::default(),
            Self::Shared(bytes) => Arc::clone(bytes),
        }
    }
}

impl Deref for Value {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Empty(_) => &[],
            Self::Shared(bytes) => bytes,
        }
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
        for bytes in [&b""[..], b"a"] {
            let value = Value::new(bytes, 1);
            assert!(value.is_same_put(&value.clone()));
            assert!(!value.is_same_put(&Value::new(bytes, 2)));
            assert_eq!(&*value, bytes);
        }
    }
}
