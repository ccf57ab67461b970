use slate_query::raw::leading;

/// Writes of keys in one keyspace, in one buffer: entries of an index, or records.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

/// Where one write is in the buffer.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// The first bytes of the key, padded with zeros. They decide most comparisons without reading the key.
    prefix: u128,
    start: usize,
    /// Length of the key, which has a few thousand bytes at most.
    key: u32,
    /// Length of the value; [`DELETE`] is added for a delete.
    value: u32,
}

/// Marks a delete in [`Span::value`]. No value is as long as that.
const DELETE: u32 = 1 << 31;

/// A write of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Write<'e> {
    /// The new value.
    Put(&'e [u8]),
    /// The key is deleted. In a unique index that is being built, only an entry of the record with this key is; otherwise it
    /// is empty.
    Delete(&'e [u8]),
}

impl Entries {
    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.write(|out| {
            out.extend_from_slice(key);
            out.extend_from_slice(value);
            (key.len(), ())
        });
    }

    /// Adds the delete of a key; `owner` as in [`Write::Delete`].
    pub(super) fn push_delete(&mut self, key: &[u8], owner: &[u8]) {
        self.push(key, owner);
        if let Some(span) = self.spans.last_mut() {
            span.value |= DELETE;
        }
    }

    /// Adds an entry that `write` appends: the key, whose length it returns, followed by the value.
    pub(super) fn write<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> (usize, R)) -> R {
        let start = self.bytes.len();
        let (length, result) = write(&mut self.bytes);
        self.add_span(start, length);
        result
    }

    /// Adds an entry like [`write`](Self::write), by a closure that can fail. It must leave the buffer unchanged if it fails.
    pub(super) fn try_write<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<usize, E>) -> Result<(), E> {
        let start = self.bytes.len();
        let length = write(&mut self.bytes)?;
        self.add_span(start, length);
        Ok(())
    }

    #[inline]
    fn add_span(&mut self, start: usize, length: usize) {
        let written = self.bytes.get(start..).unwrap_or_default();
        let (key, value) = written.split_at_checked(length).unwrap_or((written, &[]));
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(DELETE - 1);
        self.spans.push(Span { prefix: prefix(key), start, key: length(key), value: length(value) });
    }

    pub(super) fn reserve(&mut self, entries: usize, bytes: usize) {
        self.spans.reserve(entries);
        self.bytes.reserve(bytes);
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.spans.len() * size_of::<Span>()
    }

    /// Truncates to the first `entries`.
    pub(super) fn truncate(&mut self, entries: usize) {
        if let Some(first) = self.spans.get(entries) {
            self.bytes.truncate(first.start);
            self.spans.truncate(entries);
        }
    }

    /// Removes the entries at these positions, which ascend. Their bytes stay in the buffer.
    pub(super) fn remove(&mut self, positions: impl Iterator<Item = usize>) {
        let (mut positions, mut at) = (positions.peekable(), 0);
        self.spans.retain(|_| {
            let is_removed = positions.next_if_eq(&at).is_some();
            at += 1;
            !is_removed
        });
    }

    pub(super) fn last_key(&self) -> Option<&[u8]> {
        self.get(self.len().checked_sub(1)?).map(|(key, _)| key)
    }

    /// Returns the key and the value of an entry.
    pub(super) fn get(&self, at: usize) -> Option<(&[u8], &[u8])> {
        self.spans.get(at)?.of(&self.bytes)
    }

    /// Returns keys and values in insertion order, or in key order after [`sort`](Self::sort).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.iter_from(0)
    }

    /// Returns the entries without the first `entries`.
    pub(super) fn iter_from(&self, entries: usize) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.spans.iter().skip(entries).filter_map(|span| span.of(&self.bytes))
    }

    /// Returns keys and their writes, in the order of [`iter`](Self::iter).
    #[inline]
    pub(super) fn writes(&self) -> impl Iterator<Item = (&[u8], Write<'_>)> {
        self.spans.iter().filter_map(|span| span.write(&self.bytes))
    }

    /// Returns the writes of each key. The entries must be sorted.
    pub(super) fn by_key(&self) -> impl Iterator<Item = KeyWrites<'_>> {
        let key = |span: &Span| span.of(&self.bytes).map(|(key, _)| key);
        self.spans
            .chunk_by(move |a, b| a.prefix == b.prefix && key(a) == key(b))
            .map(|spans| KeyWrites { bytes: &self.bytes, spans })
    }

    /// Sorts the entries by their keys, a delete before a put of the same key.
    pub(super) fn sort(&mut self) {
        let Self { bytes, spans } = self;
        if spans.len() < 2 {
            return;
        }
        // Sorts by the prefixes first, which needs no unpredictable branches.
        spans.sort_unstable_by_key(|span| span.prefix);
        for alike in spans.chunk_by_mut(|a, b| a.prefix == b.prefix).filter(|alike| alike.len() > 1) {
            alike.sort_unstable_by(|a, b| a.order(bytes).cmp(&b.order(bytes)));
        }
    }

    /// Removes entries with equal keys from sorted entries, except one of each.
    pub(super) fn dedup(&mut self) {
        let Self { bytes, spans } = self;
        let key = |span: &Span| span.of(bytes).map(|(key, _)| key);
        spans.dedup_by(|entry, before| key(entry) == key(before));
    }

    /// Returns whether an entry has this key. The entries must be sorted.
    pub(crate) fn contains_key(&self, key: &[u8]) -> bool {
        let order = |span: &Span| span.of(&self.bytes).map(|(there, _)| there).cmp(&Some(key));
        self.spans.binary_search_by(order).is_ok()
    }
}

/// All writes of one key within a call. Several documents can have the same key in a unique index.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyWrites<'e> {
    bytes: &'e [u8],
    spans: &'e [Span],
}

impl<'e> KeyWrites<'e> {
    pub(super) fn key(self) -> &'e [u8] {
        self.spans.first().and_then(|span| span.of(self.bytes)).map_or(&[], |(key, _)| key)
    }

    /// Returns the values that are put.
    pub(super) fn puts(self) -> impl Iterator<Item = &'e [u8]> {
        self.spans.iter().filter_map(move |span| match span.write(self.bytes)? {
            (_, Write::Put(value)) => Some(value),
            (_, Write::Delete(_)) => None,
        })
    }

    /// Returns the owners of the deleted entries.
    pub(super) fn deletes(self) -> impl Iterator<Item = &'e [u8]> {
        self.spans.iter().filter_map(move |span| match span.write(self.bytes)? {
            (_, Write::Delete(owner)) => Some(owner),
            (_, Write::Put(_)) => None,
        })
    }
}

impl Span {
    /// Returns the key and the value.
    #[inline]
    fn of<'b>(&self, bytes: &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
        let [key, value] = [self.key, self.value & !DELETE].map(|length| usize::try_from(length).unwrap_or_default());
        bytes.get(self.start..)?.get(..key + value)?.split_at_checked(key)
    }

    /// Orders spans: by key, deletes first, then by value.
    fn order<'b>(&self, bytes: &'b [u8]) -> Option<(&'b [u8], bool, &'b [u8])> {
        let (key, value) = self.of(bytes)?;
        Some((key, self.value & DELETE == 0, value))
    }

    #[inline]
    fn write<'b>(&self, bytes: &'b [u8]) -> Option<(&'b [u8], Write<'b>)> {
        let (key, value) = self.of(bytes)?;
        Some((key, if self.value & DELETE == 0 { Write::Put(value) } else { Write::Delete(value) }))
    }
}

#[inline]
fn prefix(key: &[u8]) -> u128 {
    let (high, low) = key.split_at_checked(size_of::<u64>()).unwrap_or((key, &[]));
    u128::from(leading(high)) << u64::BITS | u128::from(leading(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(keys: &[&[u8]]) -> Entries {
        let mut entries = Entries::default();
        keys.iter().for_each(|key| entries.push(key, b""));
        entries.sort();
        entries
    }

    #[test]
    fn prefixes_are_the_first_bytes_filled_up_with_zeros() {
        let long: Vec<u8> = (1..=40).collect();
        for length in 0..=long.len() {
            let mut filled = [0; 16];
            let kept = length.min(16);
            filled[..kept].copy_from_slice(&long[..kept]);
            assert_eq!(prefix(&long[..length]), u128::from_be_bytes(filled), "{length}");
        }
    }

    #[test]
    fn entries_are_sorted_by_whole_keys_however_much_they_begin_with_is_the_same() {
        for common in [0, 8, 15, 16, 40] {
            let mut keys: Vec<Vec<u8>> = (0..200_u8)
                .map(|n| [&vec![7; common][..], &n.wrapping_mul(77).to_be_bytes(), b"behind"].concat())
                .collect();
            let sorted = entries(&keys.iter().map(Vec::as_slice).collect::<Vec<_>>());
            keys.sort_unstable();
            assert!(sorted.iter().map(|(key, _)| key).eq(keys.iter().map(Vec::as_slice)), "{common} bytes in common");
        }
    }

    #[test]
    fn the_writes_of_a_key_are_returned_together() {
        let mut entries = Entries::default();
        entries.push(b"b", b"1");
        entries.push_delete(b"a", b"owner");
        entries.push_delete(b"b", b"");
        entries.push(b"c", b"");
        entries.push(b"b", b"2");
        entries.sort();
        let seen: Vec<String> = entries
            .by_key()
            .map(|writes| {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let values: Vec<String> = writes.puts().map(text).collect();
                let owners: Vec<String> = writes.deletes().map(text).collect();
                format!("{} put {values:?} delete {owners:?}", text(writes.key()))
            })
            .collect();
        let expected = [r#"a put [] delete ["owner"]"#, r#"b put ["1", "2"] delete [""]"#, r#"c put [""] delete []"#];
        assert_eq!(seen, expected);
        assert!(entries.contains_key(b"c") && !entries.contains_key(b"d"));
    }
}
