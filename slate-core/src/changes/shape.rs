//! Events as MongoDB's change events.

use slate_query::raw::{Doc, Kind, Value, Writer};
use slate_store::Keyspace;

use super::{CommitTime, Event, EventKind, Token, TokenKind};
use crate::namespace;

/// Whether a stream has MongoDB's expanded events, with more kinds and fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expanded {
    No,
    /// `showExpandedEvents`.
    Yes,
}

/// Fields that a stream adds to a change event. `None`: no such field; `Some(None)`: null.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Added<'a> {
    /// `fullDocument`. Ignored for inserts and replacements, which have their own.
    pub(crate) full_document: Option<Option<Doc<'a>>>,
    pub(crate) before: Option<Option<Doc<'a>>>,
}

impl EventKind {
    /// Returns MongoDB's `operationType`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Replace => "replace",
            Self::Delete => "delete",
            Self::Create => "create",
            Self::Drop => "drop",
            Self::Rename => "rename",
            Self::CreateIndexes => "createIndexes",
            Self::DropIndexes => "dropIndexes",
            Self::Modify => "modify",
            Self::DropDatabase => "dropDatabase",
        }
    }

    /// Whether only streams with expanded events yield events of this kind.
    pub(crate) fn is_expanded(self) -> bool {
        matches!(self, Self::Create | Self::CreateIndexes | Self::DropIndexes | Self::Modify)
    }
}

impl<'e> Event<'e> {
    /// Returns the new stored name of a renamed collection; `None` for other events.
    pub(crate) fn renamed_to(&self) -> Option<&'e str> {
        self.document.get("to").and_then(Value::as_str).filter(|_| self.kind == EventKind::Rename)
    }

    /// Returns MongoDB's change event, as BSON.
    pub(crate) fn shaped(&self, time: CommitTime, token: Token, expanded: Expanded, added: Added<'_>) -> Vec<u8> {
        let mut out = Writer::with_capacity(self.document.bytes().len() + 256);
        let uuid = self.source.records.filter(|_| expanded == Expanded::Yes);
        write_head(&mut out, self.kind.name(), time, token, uuid);
        if let Some(document) = match self.kind {
            EventKind::Insert | EventKind::Replace => Some(Some(self.document)),
            _ => added.full_document,
        } {
            write_or_null(&mut out, b"fullDocument", document);
        }
        write_namespace(&mut out, b"ns", self.source.name, self.kind);
        if let Some(to) = self.renamed_to() {
            write_namespace(&mut out, b"to", to, self.kind);
        }
        if let Some(id) = self.id() {
            out.open_document(b"documentKey");
            out.append(b"_id", id);
            out.close();
        }
        if let Some(description) = self.description {
            out.open_document(b"updateDescription");
            let shown = |name: &[u8]| name != b"disambiguatedPaths" || expanded == Expanded::Yes;
            for part in description.elements().filter(|part| shown(part.name)) {
                out.append(part.name, part.value);
            }
            if expanded == Expanded::Yes && description.get("disambiguatedPaths").is_none() {
                out.open_document(b"disambiguatedPaths");
                out.close();
            }
            out.close();
        }
        if expanded == Expanded::Yes && !self.kind.is_of_document() {
            self.write_operation(token.log, &mut out);
        }
        if let Some(before) = added.before {
            write_or_null(&mut out, b"fullDocumentBeforeChange", before);
        }
        out.finish()
    }

    /// Appends `operationDescription`, the details of a change of a definition, unless it is a drop; for a create
    /// also `nsType`.
    fn write_operation(&self, log: u32, out: &mut Writer) {
        match self.kind {
            EventKind::Drop | EventKind::DropDatabase => {}
            EventKind::Rename => {
                out.open_document(b"operationDescription");
                if let Some(to) = self.renamed_to() {
                    write_namespace(out, b"to", to, self.kind);
                }
                let dropped = self.document.get("dropTarget").and_then(Value::as_i64);
                if let Some(dropped) = dropped.and_then(|dropped| u32::try_from(dropped).ok()) {
                    write_uuid(out, b"dropTarget", log, Keyspace(dropped));
                }
                out.close();
            }
            EventKind::Create => {
                let is_view = self.document.get("viewOn").is_some();
                out.append(b"operationDescription", Value::new(Kind::Document, self.document.bytes()));
                out.append_string(b"nsType", if is_view { b"view" } else { b"collection" });
            }
            _ => out.append(b"operationDescription", Value::new(Kind::Document, self.document.bytes())),
        }
    }
}

/// Returns the `invalidate` event, which ends a stream whose collection or database was dropped or renamed.
pub(crate) fn invalidation(time: CommitTime, token: Token) -> Vec<u8> {
    let mut out = Writer::new();
    write_head(&mut out, "invalidate", time, Token { kind: TokenKind::Invalidate, ..token }, None);
    out.finish()
}

/// Returns a collection's UUID: MongoDB's identity of a collection, which a rename does not change. It has version 8 of RFC 9562, whose other bits
/// are free: here the ID of the log and the keyspace of the records.
pub(crate) fn collection_uuid(log: u32, records: Keyspace) -> [u8; 16] {
    const VERSION_AND_VARIANT: u128 = 8 << 76 | 1 << 63;
    (u128::from(log) << 96 | VERSION_AND_VARIANT | u128::from(records.0)).to_be_bytes()
}

fn write_uuid(out: &mut Writer, name: &[u8], log: u32, records: Keyspace) {
    const UUID: u8 = 4;
    let uuid = collection_uuid(log, records);
    let binary = [16_i32.to_le_bytes().as_slice(), &[UUID], &uuid].concat();
    out.append(name, Value::new(Kind::Binary, &binary));
}

fn write_head(out: &mut Writer, kind: &str, time: CommitTime, token: Token, records: Option<Keyspace>) {
    out.append(b"_id", Value::new(Kind::Document, &token.document()));
    out.append_string(b"operationType", kind.as_bytes());
    out.append(b"clusterTime", Value::new(Kind::Timestamp, &time.stamp.to_le_bytes()));
    if let Some(records) = records {
        write_uuid(out, b"collectionUUID", token.log, records);
    }
    out.append(b"wallTime", Value::new(Kind::DateTime, &time.millis.to_le_bytes()));
}

fn write_or_null(out: &mut Writer, name: &[u8], document: Option<Doc<'_>>) {
    match document {
        Some(document) => out.append(name, Value::new(Kind::Document, document.bytes())),
        None => out.append(name, Value::NULL),
    }
}

fn write_namespace(out: &mut Writer, name: &[u8], stored: &str, kind: EventKind) {
    let (database, collection) = namespace::split(stored);
    out.open_document(name);
    out.append_string(b"db", database.as_bytes());
    if kind != EventKind::DropDatabase {
        out.append_string(b"coll", collection.as_bytes());
    }
    out.close();
}
