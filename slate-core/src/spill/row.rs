use std::cmp::Ordering;

use slate_query::Code;

use crate::{Error, ErrorKind, Result};

/// A borrowed row: a key that orders it, and a payload.
///
/// The key is a sort key followed by a tie key. No sort key of a sort is a proper prefix of another, so comparing the
/// concatenation is the same as comparing sort keys first and tie keys second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'r> {
    pub(super) key: &'r [u8],
    /// Length of the sort key.
    pub(super) split: usize,
    pub(crate) payload: &'r [u8],
}

/// Bytes of a row's header: the lengths of the key, of the sort key and of the payload, 4 bytes each, little-endian.
pub(super) const HEADER: usize = 12;

impl<'r> Row<'r> {
    /// Returns the first part of the key.
    pub(crate) fn sort_key(&self) -> &'r [u8] {
        self.key.get(..self.split).unwrap_or_default()
    }

    /// Returns the second part of the key, which orders rows with equal sort keys.
    pub(crate) fn tie_key(&self) -> &'r [u8] {
        self.key.get(self.split..).unwrap_or_default()
    }

    /// Parses the row at the start of `bytes`, as encoded by [`write_row`]. Returns `None` if `bytes` end early.
    #[inline]
    pub(super) fn parse(bytes: &'r [u8]) -> Option<Self> {
        let [key, split, payload] = lengths(bytes)?;
        let key_end = HEADER + key;
        Some(Self { key: bytes.get(HEADER..key_end)?, split, payload: bytes.get(key_end..key_end + payload)? })
    }

    /// Returns the length of the row's encoding.
    pub(super) fn written_len(&self) -> usize {
        HEADER + self.key.len() + self.payload.len()
    }

    pub(super) fn cmp_key(&self, other: &Row<'_>) -> Ordering {
        self.key.cmp(other.key)
    }
}

/// Parses the three lengths of a row's header.
#[inline]
pub(super) fn lengths(bytes: &[u8]) -> Option<[usize; 3]> {
    let (head, _) = bytes.split_first_chunk::<HEADER>()?;
    let [k0, k1, k2, k3, s0, s1, s2, s3, p0, p1, p2, p3] = *head;
    let length = |bytes| usize::try_from(u32::from_le_bytes(bytes)).ok();
    Some([length([k0, k1, k2, k3])?, length([s0, s1, s2, s3])?, length([p0, p1, p2, p3])?])
}

/// Appends a row to `out`.
///
/// # Errors
/// `TooLarge` if a key or a payload is 4 GiB or longer.
#[inline]
pub(super) fn write_row(sort_key: &[u8], tie_key: &[u8], payload: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let lengths = [sort_key.len() + tie_key.len(), sort_key.len(), payload.len()];
    let mut header = [0; HEADER];
    for (part, length) in header.chunks_exact_mut(4).zip(lengths) {
        part.copy_from_slice(&u32::try_from(length).map_err(|_| too_large(length))?.to_le_bytes());
    }
    out.extend_from_slice(&header);
    out.extend_from_slice(sort_key);
    out.extend_from_slice(tie_key);
    out.extend_from_slice(payload);
    Ok(())
}

fn too_large(length: usize) -> Error {
    let message = format!("a sort key or a row has {length} bytes; the limit is {}", u32::MAX);
    Error::new(ErrorKind::TooLarge, Code::BSON_OBJECT_TOO_LARGE, message)
}
