use std::sync::Arc;

use slate_query::{raw::Doc, update::describe};
use slate_store::Keyspace;

use super::{entries::Entries, prepare::id};
use crate::{
    catalog::CollectionInfo,
    changes::{EventBuffer, EventKind, EventSource, Images, entry_size, event_size},
};

/// The events of the changes that a call makes to a collection, in the order in which they are made.
///
/// A new document may still be rejected when it is added to the changes. It is logged when the next change of another kind is logged, or
/// the changes are complete.
pub(super) struct CallEvents {
    pub(super) events: EventBuffer,
    collection: Arc<str>,
    records: Keyspace,
    images: Images,
    /// Whether changed documents are logged as replaced, not as updated.
    pub(super) replaces: bool,
    /// The number of records that are logged: the first ones of the changes.
    pub(super) rows: usize,
    /// The number of events that were spilled.
    pub(super) spilled: u64,
}

/// The bytes that are reserved for what an update changed; a longer description grows the buffer.
const DESCRIPTION: usize = 256;

impl CallEvents {
    pub(super) fn new(collection: &CollectionInfo) -> Self {
        Self {
            events: EventBuffer::default(),
            collection: Arc::clone(&collection.name),
            records: collection.records,
            images: if collection.keeps_images { Images::Kept } else { Images::None },
            replaces: false,
            rows: 0,
            spilled: 0,
        }
    }

    /// Returns the size of an entry of the log with only the event of this new document, in bytes.
    pub(super) fn size_of_insert(&self, document: Doc<'_>) -> usize {
        entry_size(event_size(&self.collection, &[document.bytes()]))
    }

    /// Logs the records before row `end` that are not logged yet: new documents.
    pub(super) fn inserted(&mut self, records: &Entries, end: usize) {
        let source = EventSource { name: &self.collection, records: Some(self.records), images: self.images };
        for (_, stored) in records.iter_from(self.rows).take(end.saturating_sub(self.rows)) {
            self.events.push(EventKind::Insert, source, &[Doc::stored(stored).bytes()]);
        }
        self.rows = self.rows.max(end);
    }

    /// Logs that the next record was changed. Returns the size of an entry of the log with only this event, in bytes.
    pub(super) fn changed(&mut self, old: Doc<'_>, new: Doc<'_>) -> usize {
        self.rows += 1;
        let size = self.events.size();
        let source = EventSource { name: &self.collection, records: Some(self.records), images: self.images };
        let before = match self.images {
            Images::Kept => old.bytes(),
            Images::None => &[],
        };
        self.events.push_with(source, new.bytes().len() + DESCRIPTION + before.len(), |out| {
            out.extend_from_slice(new.bytes());
            let described = if self.replaces { None } else { describe(old, new, out) };
            out.extend_from_slice(before);
            described.map_or(EventKind::Replace, |()| EventKind::Update)
        });
        entry_size(self.events.size() - size)
    }

    /// Logs that the next record was deleted. Returns the size of an entry of the log with only this event, in bytes.
    pub(super) fn deleted(&mut self, old: Doc<'_>) -> usize {
        self.rows += 1;
        let before = (self.images == Images::Kept).then_some(old);
        let size = self.events.size();
        let source = EventSource { name: &self.collection, records: Some(self.records), images: self.images };
        self.events.push_delete(source, id(old), before);
        entry_size(self.events.size() - size)
    }
}
