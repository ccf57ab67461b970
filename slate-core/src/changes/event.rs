//! Events as bytes:
//!
//! ```text
//! length (u32), kind (u8), images (u8), length of the name (u16), collection (u32), name, documents
//! ```
//!
//! All numbers are little-endian. `collection` is the number of the keyspace of the records, which a rename does not change. `name` is the stored
//! name of the collection. `documents` are the documents of [`Event`], in its order.

use slate_query::raw::{Doc, Value, write_one};
use slate_store::Keyspace;

/// The kind of a change, of a document or a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventKind {
    Insert,
    Update,
    Replace,
    Delete,
    Create,
    Drop,
    Rename,
    CreateIndexes,
    DropIndexes,
    Modify,
    DropDatabase,
}

/// The kinds; a kind's position is its number in the log.
const KINDS: [EventKind; 11] = [
    EventKind::Insert,
    EventKind::Update,
    EventKind::Replace,
    EventKind::Delete,
    EventKind::Create,
    EventKind::Drop,
    EventKind::Rename,
    EventKind::CreateIndexes,
    EventKind::DropIndexes,
    EventKind::Modify,
    EventKind::DropDatabase,
];

/// Whether the log stores the documents before and after each change of the collection, for streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Images {
    None,
    Kept,
}

/// The collection of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventSource<'e> {
    /// The stored name.
    pub(crate) name: &'e str,
    /// The keyspace of the records; `None` for a view and for a database as a whole.
    pub(crate) records: Option<Keyspace>,
    pub(crate) images: Images,
}

/// A change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event<'e> {
    pub(crate) kind: EventKind,
    pub(crate) source: EventSource<'e>,
    /// The new document of an insert, an update and a replacement. `{_id}` for a delete. For a definition: the details of its change.
    pub(crate) document: Doc<'e>,
    /// The changes of an update: MongoDB's `updateDescription`.
    pub(crate) description: Option<Doc<'e>>,
    /// The document before an update, a replacement or a delete, if the collection logs it (`changeStreamPreAndPostImages`).
    pub(crate) before: Option<Doc<'e>>,
}

const LENGTH: usize = 4;
const HEAD: usize = 8;

/// The number in the log for no keyspace.
const NO_RECORDS: u32 = u32::MAX;

impl EventKind {
    fn number(self) -> u8 {
        KINDS.iter().position(|kind| *kind == self).and_then(|at| u8::try_from(at).ok()).unwrap_or_default()
    }

    /// Whether the event is a change of a document.
    pub(crate) fn is_of_document(self) -> bool {
        matches!(self, Self::Insert | Self::Update | Self::Replace | Self::Delete)
    }
}

impl<'e> Event<'e> {
    /// Returns the first event and the bytes after it. `None` if the bytes are empty or damaged.
    pub(super) fn split(bytes: &'e [u8]) -> Option<(Self, &'e [u8])> {
        let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
        let (event, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        let ([kind, images, length @ .., a, b, c, d], event) = event.split_first_chunk::<HEAD>()?;
        let (name, mut documents) = event.split_at_checked(u16::from_le_bytes(*length).into())?;
        let kind = *KINDS.get(usize::from(*kind))?;
        let images = if *images == 0 { Images::None } else { Images::Kept };
        let records = Some(u32::from_le_bytes([*a, *b, *c, *d])).filter(|records| *records != NO_RECORDS);
        let source = EventSource { name: std::str::from_utf8(name).ok()?, records: records.map(Keyspace), images };
        let mut next = || {
            let length = u32::from_le_bytes(*documents.first_chunk()?);
            let (document, others) = documents.split_at_checked(usize::try_from(length).ok()?)?;
            documents = others;
            Some(Doc::new(document))
        };
        let document = next()?;
        let description = if kind == EventKind::Update { Some(next()?) } else { None };
        let before = next();
        Some((Self { kind, source, document, description, before }, rest))
    }

    /// Returns the `_id` of the changed document; `None` for a change of a definition.
    pub(crate) fn id(&self) -> Option<Value<'e>> {
        self.document.get("_id").filter(|_| self.kind.is_of_document())
    }
}

/// Events in the order in which they happened.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventBuffer {
    bytes: Vec<u8>,
    /// The size of the largest event in bytes. `clear` does not reset it.
    largest: usize,
}

impl EventBuffer {
    pub(crate) fn push(&mut self, kind: EventKind, source: EventSource<'_>, documents: &[&[u8]]) {
        self.push_with(source, documents.iter().map(|document| document.len()).sum(), |out| {
            documents.iter().for_each(|document| out.extend_from_slice(document));
            kind
        });
    }

    /// Adds an event whose documents `write` appends; it returns the kind. `bytes` is their approximate size.
    pub(crate) fn push_with(
        &mut self,
        source: EventSource<'_>,
        bytes: usize,
        write: impl FnOnce(&mut Vec<u8>) -> EventKind,
    ) {
        let EventSource { name, records, images } = source;
        let start = self.bytes.len();
        self.bytes.reserve(LENGTH + HEAD + name.len() + bytes);
        // The length and the kind are written last.
        self.bytes.extend_from_slice(&[0; LENGTH + 1]);
        self.bytes.push(u8::from(images == Images::Kept));
        self.bytes.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes());
        self.bytes.extend_from_slice(&records.map_or(NO_RECORDS, |records| records.0).to_le_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
        let kind = write(&mut self.bytes);
        let size = self.bytes.len() - start;
        let length = u32::try_from(size - LENGTH).unwrap_or(u32::MAX).to_le_bytes();
        if let Some((head, [number, ..])) = self.bytes.get_mut(start..).and_then(|event| event.split_first_chunk_mut())
        {
            *head = length;
            *number = kind.number();
        }
        self.largest = self.largest.max(size);
    }

    /// Adds the delete of a document with this `_id`.
    pub(crate) fn push_delete(&mut self, source: EventSource<'_>, id: Value<'_>, before: Option<Doc<'_>>) {
        let mut key = Vec::new();
        write_one(b"_id", id, &mut key);
        match before {
            Some(before) => self.push(EventKind::Delete, source, &[&key, before.bytes()]),
            None => self.push(EventKind::Delete, source, &[&key]),
        }
    }

    /// Adds an event that was encoded before.
    pub(crate) fn push_encoded(&mut self, event: &[u8]) {
        self.bytes.extend_from_slice(event);
        self.largest = self.largest.max(event.len());
    }

    pub(crate) fn append(&mut self, other: &mut Self) {
        if self.bytes.is_empty() {
            std::mem::swap(self, other);
        } else {
            self.bytes.append(&mut other.bytes);
            self.largest = self.largest.max(other.largest);
        }
    }

    /// Returns the encoded events.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let length = u32::from_le_bytes(*rest.first_chunk()?);
            let (event, others) = rest.split_at_checked(LENGTH + usize::try_from(length).ok()?)?;
            rest = others;
            Some(event)
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the size of the largest event in bytes, or of a larger one that [`clear`](Self::clear) has removed.
    pub(crate) fn largest(&self) -> usize {
        self.largest
    }

    /// Returns the size of all events in bytes.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// Returns the size of an event in bytes.
pub(crate) fn event_size(name: &str, documents: &[&[u8]]) -> usize {
    LENGTH + HEAD + name.len() + documents.iter().map(|document| document.len()).sum::<usize>()
}

/// Returns whether changes of the collection are logged: false in MongoDB's internal databases `admin`, `config` and `local`.
pub(crate) fn is_logged(name: &str) -> bool {
    let database = name.strip_prefix('$').and_then(|full| full.split_once('.'));
    !matches!(database, Some(("admin" | "config" | "local", _)))
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;
    use slate_query::raw::OwnedValue;

    use super::*;

    #[test]
    fn events_are_read_as_they_were_written() {
        let (old, new, change) = (rawdoc! { "_id": 1, "a": 1 }, rawdoc! { "_id": 1, "a": 2 }, rawdoc! { "x": 1 });
        let mut events = EventBuffer::default();
        let source = EventSource { name: "c", records: Some(Keyspace(7)), images: Images::None };
        let other = EventSource { name: "$shop.c", records: None, images: Images::Kept };
        events.push(EventKind::Insert, source, &[old.as_bytes()]);
        events.push(EventKind::Update, other, &[new.as_bytes(), change.as_bytes(), old.as_bytes()]);
        let id = OwnedValue::from(bson::Bson::Int32(1));
        events.push_delete(source, id.as_value(), None);
        let (insert, rest) = Event::split(&events.bytes).unwrap();
        assert_eq!((insert.kind, insert.source, insert.document.bytes()), (EventKind::Insert, source, old.as_bytes()));
        let (update, rest) = Event::split(rest).unwrap();
        assert_eq!(update.source, other);
        assert_eq!(update.description.map(Doc::bytes), Some(change.as_bytes()));
        assert_eq!(update.before.map(Doc::bytes), Some(old.as_bytes()));
        let (delete, rest) = Event::split(rest).unwrap();
        assert_eq!((delete.kind, delete.id()), (EventKind::Delete, Some(id.as_value())));
        assert!(Event::split(rest).is_none() && delete.before.is_none());
        assert_eq!(events.iter().count(), 3);
        let damaged = &events.bytes[..events.bytes.len() - 1];
        assert_eq!(EventBuffer { bytes: damaged.to_vec(), largest: 0 }.iter().count(), 2);
    }

    #[test]
    fn internal_databases_are_not_logged() {
        let logged = ["users", "$shop.users", "config", "$configs.x"];
        assert!(logged.into_iter().all(is_logged));
        assert!(!["$config.transactions", "$admin.system", "$local.x"].into_iter().any(is_logged));
    }
}
