use std::ops::Range;

use super::{Doc, Kind, Value};
use crate::work;

/// Writes a document in one pass into one buffer: fields are appended, nested documents and arrays opened and closed.
/// The length of a document is filled in when it is closed.
#[derive(Debug)]
pub struct Writer {
    buffer: Vec<u8>,
    /// The offset of the document in the buffer.
    start: usize,
    /// The offsets of the open nested documents. A flat document allocates nothing here.
    open: Vec<usize>,
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// Starts a document in a new buffer.
    pub fn new() -> Self {
        Self::into_buffer(Vec::new())
    }

    /// Starts a document in a new buffer of this capacity in bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self::into_buffer(Vec::with_capacity(bytes))
    }

    /// Reserves capacity for this many more bytes. Does nothing if the allocation fails.
    pub fn try_reserve(&mut self, bytes: usize) {
        // Appending reserves what it needs.
        let _ = self.buffer.try_reserve(bytes);
    }

    /// Returns the bytes of the document so far.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Returns the capacity of the buffer, in bytes.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Reserves capacity for a document of exactly this many bytes, for a caller that counts memory.
    pub(crate) fn reserve_exact(&mut self, bytes: usize) {
        self.buffer.reserve_exact(bytes.saturating_sub(self.len()));
    }

    /// Starts a document at the end of `buffer`, which `finish` returns.
    #[inline]
    pub fn into_buffer(mut buffer: Vec<u8>) -> Self {
        let start = buffer.len();
        buffer.extend_from_slice(&[0; 4]);
        Self { buffer, start, open: Vec::new() }
    }

    /// Appends a field. `name` must not contain a NUL byte, which would end the name.
    #[inline]
    pub fn append(&mut self, name: &[u8], value: Value<'_>) {
        work::did(1 + value.bytes().len() / 64);
        self.head(value.kind(), name);
        self.buffer.extend_from_slice(value.bytes());
    }

    /// Appends a string. `name` is as in [`append`](Self::append).
    pub fn append_string(&mut self, name: &[u8], text: &[u8]) {
        self.head(Kind::String, name);
        // A document's length is an int32, so no longer string fits into one.
        let length = i32::try_from(text.len() + 1).unwrap_or(i32::MAX);
        self.buffer.extend_from_slice(&length.to_le_bytes());
        self.buffer.extend_from_slice(text);
        self.buffer.push(0);
    }

    /// Appends an encoded field: type, name and value. Returns its offset in the document.
    #[inline]
    pub(super) fn append_field(&mut self, field: &[u8]) -> usize {
        let place = self.buffer.len() - self.start;
        self.buffer.extend_from_slice(field);
        place
    }

    /// Returns these bytes of the buffer.
    #[inline]
    pub(super) fn written_mut(&mut self, place: Range<usize>) -> Option<&mut [u8]> {
        self.buffer.get_mut(place)
    }

    /// Appends a field whose encoded value `compose` appends to the buffer. Returns what `compose` returns.
    pub(crate) fn append_with<R>(&mut self, name: &[u8], kind: Kind, compose: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        self.head(kind, name);
        compose(&mut self.buffer)
    }

    /// Appends a string. `name` must not contain a NUL byte.
    pub(crate) fn append_str(&mut self, name: &str, text: &str) {
        self.append_with(name.as_bytes(), Kind::String, |buffer| {
            let length = u32::try_from(text.len() + 1).unwrap_or(u32::MAX);
            buffer.extend_from_slice(&length.to_le_bytes());
            buffer.extend_from_slice(text.as_bytes());
            buffer.push(0);
        });
    }

    /// Appends every field of `doc`.
    pub fn extend(&mut self, doc: Doc<'_>) {
        let bytes = doc.bytes();
        self.buffer.extend_from_slice(bytes.get(4..bytes.len().saturating_sub(1)).unwrap_or_default());
    }

    /// Appends encoded elements: types, names and values, without a document's length and terminator.
    #[inline]
    pub fn append_raw(&mut self, elements: &[u8]) {
        self.buffer.extend_from_slice(elements);
    }

    /// Returns the current position, for [`Writer::rollback`].
    #[inline]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { length: self.buffer.len(), open: self.open.len() }
    }

    /// Discards everything written since `checkpoint`, including documents opened since.
    pub fn rollback(&mut self, checkpoint: Checkpoint) {
        self.buffer.truncate(checkpoint.length);
        self.open.truncate(checkpoint.open);
    }

    /// Opens a nested document named `name`. The following fields go into it until [`Writer::close`].
    pub fn open_document(&mut self, name: &[u8]) {
        self.open(Kind::Document, name);
    }

    /// Opens a nested array named `name`. The caller names its elements "0", "1", ….
    pub fn open_array(&mut self, name: &[u8]) {
        self.open(Kind::Array, name);
    }

    /// Closes the last opened nested document or array. Only `finish` closes the outermost document.
    pub fn close(&mut self) {
        if let Some(start) = self.open.pop() {
            self.seal(start);
        }
    }

    /// Closes everything that is open and returns the buffer. Always inlined, because moving the writer into a call is
    /// slow.
    #[inline(always)]
    pub fn finish(mut self) -> Vec<u8> {
        if !self.open.is_empty() {
            self.close_all();
        }
        self.seal(self.start);
        self.buffer
    }

    #[cold]
    fn close_all(&mut self) {
        while !self.open.is_empty() {
            self.close();
        }
    }

    fn open(&mut self, kind: Kind, name: &[u8]) {
        self.head(kind, name);
        self.open.push(self.buffer.len());
        self.buffer.extend_from_slice(&[0; 4]);
    }

    #[inline]
    fn head(&mut self, kind: Kind, name: &[u8]) {
        self.buffer.push(kind.byte());
        self.buffer.extend_from_slice(name.split(|&byte| byte == 0).next().unwrap_or_default());
        self.buffer.push(0);
    }

    #[inline]
    fn seal(&mut self, start: usize) {
        self.buffer.push(0);
        // Documents over 2 GiB are rejected on input; this length marks a larger one as damaged.
        let length = i32::try_from(self.buffer.len() - start).unwrap_or(i32::MAX);
        if let Some(head) = self.buffer.get_mut(start..start + 4) {
            head.copy_from_slice(&length.to_le_bytes());
        }
    }
}

/// Returns the document, which must not have an `_id`, with `id` as its first field. The other fields are copied
/// unread.
pub fn with_id(id: Value<'_>, document: Doc<'_>) -> Vec<u8> {
    let head = b"_id".len() + 2;
    let mut writer = Writer::with_capacity(document.bytes().len() + head + id.bytes().len());
    writer.append(b"_id", id);
    writer.extend(document);
    writer.finish()
}

/// Writes into `out` (cleared first) a document of one field. `name` must not contain a NUL byte. Faster than a
/// [`Writer`] for one field.
pub fn write_one(name: &[u8], value: Value<'_>, out: &mut Vec<u8>) {
    let length = 4 + 1 + name.len() + 1 + value.bytes().len() + 1;
    out.clear();
    out.reserve(length);
    out.extend_from_slice(&i32::try_from(length).unwrap_or(i32::MAX).to_le_bytes());
    out.push(value.kind().byte());
    out.extend_from_slice(name);
    out.push(0);
    out.extend_from_slice(value.bytes());
    out.push(0);
}

/// A position in the output of a [`Writer`].
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint {
    length: usize,
    open: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_one_agrees_with_a_writer() {
        let mut out = vec![1, 2, 3];
        for (name, kind, bytes) in
            [("v", Kind::Null, &[][..]), ("", Kind::Int32, &[1, 0, 0, 0]), ("name", Kind::String, b"\x02\0\0\0x\0")]
        {
            let value = Value::new(kind, bytes);
            let mut writer = Writer::new();
            writer.append(name.as_bytes(), value);
            write_one(name.as_bytes(), value, &mut out);
            assert_eq!(out, writer.finish(), "{name}");
        }
    }
}
