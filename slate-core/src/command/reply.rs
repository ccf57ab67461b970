use bson::{Document, RawDocumentBuf};
use slate_query::raw::{Doc, Kind, Value, Writer};

use crate::{Error, Result};

/// The end of a batch in a reply.
pub(super) struct Filled {
    /// The cursor id for the next batch; 0 after the last one.
    pub(super) id: i64,
    /// The resume token of a change stream.
    pub(super) token: Option<Vec<u8>>,
}

/// The capacity of a reply with a long batch in bytes: more than the 32 MiB up to which glibc may retain freed memory. Such a buffer is a memory
/// mapping of its own: pages that are not written usually use no memory, growth copies nothing, and a drop on any thread returns all pages to the
/// system.
const ROOM_FOR_BATCH: usize = 33 << 20;

/// Builds a reply.
#[derive(Debug, Default)]
pub(super) struct Reply(Writer);

impl Reply {
    /// Returns a reply that holds this many bytes without growing.
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(Writer::with_capacity(bytes))
    }

    /// Reserves memory for the longest batch. If the system has too little, the reply grows as needed.
    pub(super) fn expect_long_batch(&mut self) {
        self.0.try_reserve(ROOM_FOR_BATCH);
    }

    pub(super) fn value(&mut self, name: &str, value: Value<'_>) {
        self.0.append(name.as_bytes(), value);
    }

    pub(super) fn document(&mut self, name: &str, doc: Doc<'_>) {
        self.value(name, Value::new(Kind::Document, doc.bytes()));
    }

    /// Appends the fields of a document.
    pub(super) fn fields(&mut self, fields: &Document) -> Result<()> {
        let fields = RawDocumentBuf::try_from(fields).map_err(Error::conversion)?;
        Doc::from(&fields).elements().for_each(|field| self.0.append(field.name, field.value));
        Ok(())
    }

    pub(super) fn boolean(&mut self, name: &str, truth: bool) {
        self.value(name, Value::new(Kind::Boolean, &[u8::from(truth)]));
    }

    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.0.append_string(name.as_bytes(), text.as_bytes());
    }

    pub(super) fn int(&mut self, name: &str, int: i32) {
        self.value(name, Value::new(Kind::Int32, &int.to_le_bytes()));
    }

    pub(super) fn double(&mut self, name: &str, double: f64) {
        self.value(name, Value::new(Kind::Double, &double.to_le_bytes()));
    }

    /// Appends a count: as int32 if it fits, as int64 otherwise.
    pub(super) fn count(&mut self, name: &str, count: impl TryInto<i64>) {
        let long = count.try_into().unwrap_or(i64::MAX);
        match i32::try_from(long) {
            Ok(int) => self.int(name, int),
            Err(_) => self.long(name, long),
        }
    }

    /// Appends a nested document that `fill` writes.
    pub(super) fn nest<R>(&mut self, name: &str, fill: impl FnOnce(&mut Self) -> R) -> R {
        self.0.open_document(name.as_bytes());
        let result = fill(self);
        self.0.close();
        result
    }

    /// Appends a nested array that `fill` writes, naming the elements by their positions.
    pub(super) fn array<R>(&mut self, name: &str, fill: impl FnOnce(&mut Self) -> R) -> R {
        self.0.open_array(name.as_bytes());
        let result = fill(self);
        self.0.close();
        result
    }

    pub(super) fn long(&mut self, name: &str, long: i64) {
        self.value(name, Value::new(Kind::Int64, &long.to_le_bytes()));
    }

    /// Appends a cursor. `fill` appends the documents of the batch.
    pub(super) fn cursor(
        &mut self,
        batch: &str,
        namespace: &str,
        fill: impl FnOnce(&mut Self) -> Result<Filled>,
    ) -> Result<()> {
        self.nest("cursor", |cursor| {
            let Filled { id, token } = cursor.array(batch, fill)?;
            if let Some(token) = token {
                cursor.document("postBatchResumeToken", Doc::new(&token));
            }
            cursor.long("id", id);
            cursor.text("ns", namespace);
            Ok(())
        })
    }

    /// Returns the reply of a successful command.
    ///
    /// # Errors
    /// Fails if the reply exceeds the length of a BSON document.
    pub(super) fn finish(mut self) -> Result<RawDocumentBuf> {
        self.double("ok", 1.0);
        self.into_document()
    }

    /// Returns the appended fields as a document, without `ok`.
    ///
    /// # Errors
    /// Fails as [`finish`](Self::finish) does.
    pub(super) fn into_document(self) -> Result<RawDocumentBuf> {
        RawDocumentBuf::from_bytes(self.0.finish()).map_err(Error::conversion)
    }
}
