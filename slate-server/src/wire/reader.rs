use super::WireError;

/// Reads values from the start of a message, and removes them. Fails with the name of a value that is truncated.
#[derive(Clone, Copy)]
pub(super) struct Reader<'m>(&'m [u8]);

impl<'m> Reader<'m> {
    pub(super) fn new(bytes: &'m [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn rest(self) -> &'m [u8] {
        self.0
    }

    pub(super) fn take(&mut self, length: usize, what: &'static str) -> Result<&'m [u8], WireError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(WireError::Truncated(what))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self, what: &'static str) -> Result<u8, WireError> {
        self.take(1, what)?.first().copied().ok_or(WireError::Truncated(what))
    }

    pub(super) fn int(&mut self, what: &'static str) -> Result<i32, WireError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(WireError::Truncated(what))?;
        self.0 = rest;
        Ok(i32::from_le_bytes(*bytes))
    }

    /// Reads a text that ends with a NUL byte; returns it without that byte.
    pub(super) fn text(&mut self, what: &'static str) -> Result<&'m [u8], WireError> {
        let length = self.0.iter().position(|byte| *byte == 0).ok_or(WireError::Truncated(what))?;
        let text = self.take(length, what)?;
        self.byte(what)?;
        Ok(text)
    }

    /// Reads a document. Checks only its length and terminator.
    pub(super) fn document(&mut self, what: &'static str) -> Result<&'m [u8], WireError> {
        let length = Self(self.0).int(what)?;
        let length = usize::try_from(length).ok().filter(|length| *length >= 5).ok_or(WireError::Bson(what))?;
        let document = self.take(length, what)?;
        if document.last() == Some(&0) { Ok(document) } else { Err(WireError::Bson(what)) }
    }
}
