use twox_hash::XxHash3_128;

use super::header::{Root, u16_at, u32_at, u64_at, u128_at};

/// The lengths of keys and of values in bytes, where all have the same one; `None` where lengths vary.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Widths {
    pub(super) key: Option<usize>,
    pub(super) value: Option<usize>,
}

/// A page that matches the expected checksum.
pub(super) enum Page<'p> {
    Leaf(Leaf<'p>),
    Branch(Branch<'p>),
}

/// Returns a page if it matches `checksum`.
pub(super) fn verified(bytes: &[u8], checksum: u128, widths: Widths) -> Option<Page<'_>> {
    const LEAF: u8 = 1;
    const BRANCH: u8 = 2;
    let count = usize::from(u16_at(bytes, 2)?);
    let (page, length) = match *bytes.first()? {
        LEAF => {
            let leaf = Leaf { bytes, count, widths };
            let length = leaf.value_end(count.checked_sub(1)?)?;
            (Page::Leaf(leaf), length)
        }
        BRANCH => {
            let branch = Branch { bytes, keys: count, width: widths.key };
            let length = branch.key_end(count.checked_sub(1)?)?;
            (Page::Branch(branch), length)
        }
        _ => return None,
    };
    // A checksum covers only the content of a page, not the rest.
    (XxHash3_128::oneshot(bytes.get(..length)?) == checksum).then_some(page)
}

/// A page of entries: the ends of all keys, the ends of all values, keys, values. The ends are absent for keys or values of a
/// fixed length.
pub(super) struct Leaf<'p> {
    bytes: &'p [u8],
    count: usize,
    widths: Widths,
}

impl<'p> Leaf<'p> {
    const ENDS: usize = 4;

    /// Yields keys and values; ends early at an entry that does not lie within the page.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'p [u8], &'p [u8])> {
        (0..self.count).map_while(|at| {
            let key_start = if at == 0 { self.keys_start() } else { self.key_end(at - 1)? };
            let value_start = if at == 0 { self.key_end(self.count - 1)? } else { self.value_end(at - 1)? };
            let key = self.bytes.get(key_start..self.key_end(at)?)?;
            Some((key, self.bytes.get(value_start..self.value_end(at)?)?))
        })
    }

    /// Returns the number of entries, the bytes of their keys and values, and the bytes of the page up to the end of the last one.
    pub(super) fn content(&self) -> Option<(usize, usize, usize)> {
        let end = self.value_end(self.count.checked_sub(1)?)?;
        Some((self.count, end.checked_sub(self.keys_start())?, end))
    }

    fn keys_start(&self) -> usize {
        let ends = usize::from(self.widths.key.is_none()) + usize::from(self.widths.value.is_none());
        Self::ENDS + 4 * ends * self.count
    }

    fn key_end(&self, at: usize) -> Option<usize> {
        match self.widths.key {
            Some(width) => Some(self.keys_start() + width * (at + 1)),
            None => usize::try_from(u32_at(self.bytes, Self::ENDS + 4 * at)?).ok(),
        }
    }

    fn value_end(&self, at: usize) -> Option<usize> {
        match self.widths.value {
            Some(width) => Some(self.key_end(self.count.checked_sub(1)?)? + width * (at + 1)),
            None => {
                let key_ends = if self.widths.key.is_none() { self.count } else { 0 };
                usize::try_from(u32_at(self.bytes, Self::ENDS + 4 * (key_ends + at))?).ok()
            }
        }
    }
}

/// A page of children and the keys between them: the checksums of the children, their page numbers, the ends of the keys, the
/// keys.
pub(super) struct Branch<'p> {
    bytes: &'p [u8],
    keys: usize,
    width: Option<usize>,
}

impl<'p> Branch<'p> {
    const CHECKSUMS: usize = 8;

    /// Yields each child with the key before it, which is below all its keys, and the key after it, which is not below any.
    pub(super) fn children(&self) -> impl Iterator<Item = (Root, Option<&'p [u8]>, Option<&'p [u8]>)> {
        (0..=self.keys).map_while(|at| {
            let checksum = u128_at(self.bytes, Self::CHECKSUMS + 16 * at)?;
            let page = u64_at(self.bytes, Self::CHECKSUMS + 16 * (self.keys + 1) + 8 * at)?;
            let before = at.checked_sub(1).and_then(|before| self.key(before));
            let after = (at < self.keys).then(|| self.key(at)).flatten();
            Some((Root { page, checksum }, before, after))
        })
    }

    /// Returns the end of the last key.
    #[cfg(test)]
    pub(super) fn end(&self) -> Option<usize> {
        self.key_end(self.keys.checked_sub(1)?)
    }

    fn key(&self, at: usize) -> Option<&'p [u8]> {
        let start = if at == 0 { self.keys_start() } else { self.key_end(at - 1)? };
        self.bytes.get(start..self.key_end(at)?)
    }

    fn key_ends(&self) -> usize {
        Self::CHECKSUMS + (16 + 8) * (self.keys + 1)
    }

    fn keys_start(&self) -> usize {
        self.key_ends() + if self.width.is_none() { 4 * self.keys } else { 0 }
    }

    fn key_end(&self, at: usize) -> Option<usize> {
        match self.width {
            Some(width) => Some(self.keys_start() + width * (at + 1)),
            None => usize::try_from(u32_at(self.bytes, self.key_ends() + 4 * at)?).ok(),
        }
    }
}
