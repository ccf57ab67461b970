/// Byte strings end to end in one buffer, numbered in the order in which they were added.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Packed {
    pub(super) fn with_capacity(strings: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), ends: Vec::with_capacity(strings) }
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn memory(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }

    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&[u8]> {
        let start = match number.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..*self.ends.get(number)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|number| self.get(number))
    }

    /// Adds a byte string and returns its number.
    #[inline]
    pub(super) fn push(&mut self, string: &[u8]) -> usize {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
        self.ends.len() - 1
    }

    /// Adds what `write` appends, and returns the number of bytes so far.
    #[cfg(feature = "async")]
    pub(crate) fn append(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
        self.bytes.len()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}
