use std::sync::Arc;

use bson::RawDocumentBuf;

/// A collection that exists for the commands of one caller: its documents come with the commands, and are not stored.
#[derive(Clone, Debug)]
pub(super) struct OwnCollection {
    /// The stored name that the collection would have.
    name: Arc<str>,
    documents: Arc<[RawDocumentBuf]>,
}

impl OwnCollection {
    pub(super) fn new(name: &str, documents: Arc<[RawDocumentBuf]>) -> Self {
        Self { name: name.into(), documents }
    }

    pub(super) fn has_name(&self, stored: &str) -> bool {
        *self.name == *stored
    }

    pub(super) fn documents(&self) -> Arc<[RawDocumentBuf]> {
        Arc::clone(&self.documents)
    }
}
