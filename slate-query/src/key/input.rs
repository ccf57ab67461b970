use super::{Direction, encode::has_escaped, tag};

/// A reader of key bytes in a direction.
#[derive(Clone, Copy)]
pub(super) struct KeyInput<'a> {
    rest: &'a [u8],
    mask: u8,
}

impl<'a> KeyInput<'a> {
    pub(super) fn new(bytes: &'a [u8], direction: Direction) -> Self {
        Self { rest: bytes, mask: direction.mask() }
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.rest.first().map(|byte| byte ^ self.mask)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte ^ self.mask)
    }

    /// Consumes bytes and returns them in ascending form.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(bytes.map(|byte| byte ^ self.mask))
    }

    pub(super) fn length(&mut self) -> Option<usize> {
        usize::try_from(u32::from_be_bytes(self.array()?)).ok()
    }

    pub(super) fn skip(&mut self, length: usize) -> Option<()> {
        self.rest = self.rest.get(length..)?;
        Some(())
    }

    /// Consumes bytes and appends them to `out` in ascending form.
    pub(super) fn copy(&mut self, length: usize, out: &mut Vec<u8>) -> Option<()> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        out.extend(bytes.iter().map(|byte| byte ^ self.mask));
        Some(())
    }

    /// Skips a text and its end.
    pub(super) fn skip_text(&mut self) -> Option<()> {
        let end = tag::END ^ self.mask;
        // No escape contains the byte that ends a text: the byte that starts an escape is followed by 2, 3 or 4.
        let length = self.rest.iter().position(|&byte| byte == end)?;
        self.skip(length + 1)
    }

    /// Consumes a text and its end, and appends the unescaped text to `out`.
    pub(super) fn text(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let rest = self.rest;
        self.skip_text()?;
        let text = rest.get(..rest.len() - self.rest.len() - 1)?;
        if self.mask == 0 && !has_escaped(text) {
            out.extend_from_slice(text);
            return Some(());
        }
        let mut bytes = text.iter().map(|byte| byte ^ self.mask);
        while let Some(byte) = bytes.next() {
            out.push(if byte == tag::ESCAPE { bytes.next()?.checked_sub(2)? } else { byte });
        }
        Some(())
    }

    /// Creates a reader of the same bytes, inverted once more, as in a negative number.
    pub(super) fn inverted(self) -> Self {
        Self { rest: self.rest, mask: !self.mask }
    }

    /// Continues where `other`, a reader of the same bytes, has stopped.
    pub(super) fn follow(&mut self, other: Self) {
        self.rest = other.rest;
    }
}
