//! The encoding of stored values: a tag, then the bytes of the value or the location of its chunks.
//!
//! A stored value is never empty, because some nodes treat an empty value as a deletion. A large value is stored in chunks, because a commit fails
//! if a value exceeds the largest entry of Raft's log (8 MiB by default).

use super::layout::ChunksAt;
use crate::{Context, Error, Result};

/// Maximum length in bytes of a value in one piece, and the length of a chunk.
pub(super) const CHUNK: usize = 1 << 20;

const INLINE: u8 = 0;
const CHUNKS: u8 = 1;

/// A stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// The value, with its tag.
    Inline(Vec<u8>),
    Chunks(Chunks),
}

/// A value in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunks {
    pub(super) at: ChunksAt,
    pub(super) count: u32,
}

impl Stored {
    /// Decodes a stored value. Fails with [`Corrupt`](Error::Corrupt) for bytes that this backend does not write.
    pub(super) fn read(bytes: Vec<u8>) -> Result<Self> {
        match bytes.split_first() {
            Some((&INLINE, _)) => Ok(Self::Inline(bytes)),
            Some((&CHUNKS, rest)) => Chunks::read(rest).map(Self::Chunks).ok_or_else(corrupt),
            _ => Err(corrupt()),
        }
    }

    /// Returns the value, unless it is in chunks.
    pub(super) fn inline(&self) -> Option<&[u8]> {
        match self {
            Self::Inline(bytes) => bytes.get(1..),
            Self::Chunks(_) => None,
        }
    }
}

fn corrupt() -> Error {
    Error::Corrupt(Box::new(Context::new("a value without a known tag")))
}

impl Chunks {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (began, rest) = bytes.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let count = u32::from_be_bytes(*rest.first_chunk()?);
        let at = ChunksAt { began: u64::from_be_bytes(*began), number: u32::from_be_bytes(*number) };
        (rest.len() == 4).then_some(Self { at, count })
    }

    pub(super) fn write(self) -> Vec<u8> {
        let mut bytes = vec![CHUNKS];
        bytes.extend_from_slice(&self.at.began.to_be_bytes());
        bytes.extend_from_slice(&self.at.number.to_be_bytes());
        bytes.extend_from_slice(&self.count.to_be_bytes());
        bytes
    }
}

/// Returns a value or a chunk with its tag before it.
pub(super) fn inline(value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(value.len() + 1);
    bytes.push(INLINE);
    bytes.extend_from_slice(value);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_places_of_chunks_are_read_back_and_others_are_refused() {
        for value in [&b""[..], b"\x01", b"value"] {
            assert!(!inline(value).is_empty());
            assert_eq!(Stored::read(inline(value)).unwrap().inline(), Some(value));
        }
        let chunks = Chunks { at: ChunksAt { began: 1 << 60, number: 3 }, count: 16 };
        assert_eq!(Stored::read(chunks.write()).unwrap(), Stored::Chunks(chunks));
        for bytes in [&b""[..], b"\x02", b"\x01", &chunks.write()[..10]] {
            assert!(matches!(Stored::read(bytes.into()), Err(Error::Corrupt(_))));
        }
    }
}
