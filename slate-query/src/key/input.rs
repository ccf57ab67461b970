use super::{Direction, encode::has_escaped, tag};

/// Key bytes being read, in their direction.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    rest: &'a [u8],
    mask: u8,
}

impl<'a> Input<'a> {
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

    /// The next bytes, brought into ascending form.
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

    /// Appends the next bytes to `out`, in ascending form.
    pub(super) fn copy(&mut self, length: usize, out: &mut Vec<u8>) -> Option<()> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        out.extend(bytes.iter().map(|byte| byte ^ self.mask));
        Some(())
    }

    /// Passes a text and its end.
    pub(super) fn skip_text(&mut self) -> Option<()> {
        let end = tag::END ^ self.mask;
        // The end's byte is never a part of an escape: those are followed by 2, 3 or 4.
        let length = self.rest.iter().position(|&byte| byte == end)?;
        self.skip(length + 1)
    }

    /// Appends a text to `out`, its escapes undone, and passes its end.
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

    /// The same bytes with each inverted once more, as a negative number's are.
    pub(super) fn inverted(self) -> Self {
        Self { rest: self.rest, mask: !self.mask }
    }

    /// Goes on where `other`, read from the same bytes, has come to.
    pub(super) fn follow(&mut self, other: Self) {
        self.rest = other.rest;
    }
}
