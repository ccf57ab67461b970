use bson::RawDocument;

/// Most bytes of documents that are written together.
pub(super) const BYTES: usize = 16 << 20;

/// Most documents that are written together.
pub(super) const MOST: usize = 4_096;

/// Documents of a call that are written together.
pub(super) struct Batch<'d, D> {
    /// Position of the first document in the call.
    pub(super) first: usize,
    pub(super) documents: &'d [D],
    /// The documents' size in bytes, which is bounded because invalid lengths are not added.
    pub(super) bytes: usize,
}

impl<'d, D: AsRef<RawDocument>> Batch<'d, D> {
    /// Returns the batch from position `first` on, with at most `most` documents. `None` after the last document.
    pub(super) fn at(documents: &'d [D], first: usize, most: usize) -> Option<Self> {
        let rest = documents.get(first..).filter(|rest| !rest.is_empty())?;
        let (mut count, mut bytes) = (0, 0);
        for document in rest.iter().take(most) {
            if bytes >= BYTES {
                break;
            }
            count += 1;
            bytes += document.as_ref().as_bytes().len();
        }
        Some(Self { first, documents: rest.get(..count)?, bytes: bytes.min(2 * BYTES) })
    }

    /// Returns the position after the last document.
    pub(super) fn end(&self) -> usize {
        self.first + self.documents.len()
    }

    /// The documents.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'d RawDocument> + use<'d, D> {
        iter(self.documents)
    }
}

/// The documents.
pub(super) fn iter<D: AsRef<RawDocument>>(documents: &[D]) -> impl Iterator<Item = &RawDocument> {
    documents.iter().map(AsRef::as_ref)
}

/// Returns how many documents to write together, if this many took this many bytes.
pub(super) fn fitting(documents: usize, bytes: usize) -> usize {
    let each = bytes.checked_div(documents).unwrap_or_default().max(1);
    BYTES / each
}

#[cfg(test)]
mod tests {
    use bson::{Binary, RawDocumentBuf, rawdoc, spec::BinarySubtype};

    use super::*;

    fn of_size(bytes: usize) -> RawDocumentBuf {
        rawdoc! { "b": Binary { subtype: BinarySubtype::Generic, bytes: vec![0; bytes] } }
    }

    #[test]
    fn batches_end_at_their_number_and_behind_the_document_that_fills_them() {
        let documents: Vec<RawDocumentBuf> = [1, 2, 3, BYTES, 6, BYTES, BYTES, 1].map(of_size).into();
        let batches = |most| {
            let mut ends = Vec::new();
            while let Some(batch) = Batch::at(&documents, ends.last().copied().unwrap_or_default(), most) {
                assert_eq!(batch.iter().count(), batch.documents.len());
                ends.push(batch.end());
            }
            ends
        };
        assert_eq!(batches(usize::MAX), [4, 6, 7, 8]);
        assert_eq!(batches(2), [2, 4, 6, 7, 8]);
        assert!(Batch::at(&documents[..0], 0, 2).is_none());
        assert_eq!([fitting(4, BYTES), fitting(0, 0), fitting(3, 0), fitting(1, 2 * BYTES)], [4, BYTES, BYTES, 0]);
    }
}
