use std::sync::Arc;

use slate_query::{raw::Doc, update::describe};

use super::{entries::Entries, prepare::id};
use crate::{
    catalog::CollectionInfo,
    changes::{EventBuffer, EventKind, Images},
};

/// The events of the changes that a call makes to a collection, in the order in which they are made.
///
/// A new document may still be rejected when it is added to the changes. It is logged when the next change of another kind is logged, or
/// the changes are complete.
pub(super) struct CallEvents {
    pub(super) events: EventBuffer,
    collection: Arc<str>,
    images: Images,
    /// Whether a changed document was replaced rather than updated.
    pub(super) replaces: bool,
    /// The number of records of the changes, from the first on, that are logged.
    pub(super) rows: usize,
    /// The number of events that were spilled.
    pub(super) spilled: u64,
}

impl CallEvents {
    pub(super) fn new(collection: &CollectionInfo) -> Self {
        let images = if collection.keeps_images { Images::Kept } else { Images::None };
        let collection = Arc::clone(&collection.name);
        Self { events: EventBuffer::default(), collection, images, replaces: false, rows: 0, spilled: 0 }
    }

    /// Logs the records before row `end` that are not logged yet: new documents.
    pub(super) fn inserted(&mut self, records: &Entries, end: usize) {
        for (_, stored) in records.iter_from(self.rows).take(end.saturating_sub(self.rows)) {
            let document = Doc::stored(stored).bytes();
            self.events.push(EventKind::Insert, self.images, &self.collection, &[document]);
        }
        self.rows = self.rows.max(end);
    }

    /// Logs a changed document, the next record.
    pub(super) fn changed(&mut self, old: Doc<'_>, new: Doc<'_>) {
        self.rows += 1;
        let before = match self.images {
            Images::Kept => old.bytes(),
            Images::None => &[],
        };
        let description = if self.replaces { None } else { describe(old, new) };
        match description {
            Some(description) => {
                let documents = [new.bytes(), &description, before];
                self.events.push(EventKind::Update, self.images, &self.collection, &documents);
            }
            None => self.events.push(EventKind::Replace, self.images, &self.collection, &[new.bytes(), before]),
        }
    }

    /// Logs a deleted document, the next record.
    pub(super) fn deleted(&mut self, old: Doc<'_>) {
        self.rows += 1;
        let before = (self.images == Images::Kept).then_some(old);
        self.events.push_delete(self.images, &self.collection, id(old), before);
    }
}
