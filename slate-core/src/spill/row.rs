use std::cmp::Ordering;

use slate_query::Code;

use crate::{Error, ErrorKind, Result};

/// A row, where it lies: what orders it, and what it carries.
///
/// Its key is two keys end to end. The first is self-delimiting (none of those that meet is a proper prefix of another),
/// so that comparing the two as one is comparing them one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row<'r> {
    pub(super) key: &'r [u8],
    pub(super) split: usize,
    pub(crate) payload: &'r [u8],
}

/// Lengths of the key, of its first part, and of the payload.
pub(super) const HEADER: usize = 12;

impl<'r> Row<'r> {
    /// The key's first part.
    pub(crate) fn sort_key(&self) -> &'r [u8] {
        self.key.get(..self.split).unwrap_or_default()
    }

    /// The key's second part, which decides among rows of one sort key.
    pub(crate) fn tie_key(&self) -> &'r [u8] {
        self.key.get(self.split..).unwrap_or_default()
    }

    /// The row that `bytes` begin with, as [`write_row`] lays it out; `None` where they end before it does.
    #[inline]
    pub(super) fn parse(bytes: &'r [u8]) -> Option<Self> {
        let [key, split, payload] = lengths(bytes)?;
        let key_end = HEADER + key;
        Some(Self { key: bytes.get(HEADER..key_end)?, split, payload: bytes.get(key_end..key_end + payload)? })
    }

    /// The bytes that [`write_row`] makes of it.
    pub(super) fn written_len(&self) -> usize {
        HEADER + self.key.len() + self.payload.len()
    }

    pub(super) fn cmp_key(&self, other: &Row<'_>) -> Ordering {
        self.key.cmp(other.key)
    }
}

/// The three lengths that a row begins with.
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
/// `TooLarge` where a key or a payload is longer than 4 GiB.
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
    let message = format!("a key to sort by, or a row, takes {length} bytes, and the most is {}", u32::MAX);
    Error::new(ErrorKind::TooLarge, Code::BSON_OBJECT_TOO_LARGE, message)
}
