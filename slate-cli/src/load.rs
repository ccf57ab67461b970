//! Writes documents into a collection in batches, and counts.

use std::{fmt, ops::AddAssign};

use bson::{Bson, Document, RawDocumentBuf, doc, oid::ObjectId};
use clap::ValueEnum;
use slate_core::{Collection, ErrorKind};

use crate::{
    endpoint::{Endpoint, OnSignal, Server, number},
    failure::{Failure, Result},
};

/// A batch is written when it has this many documents, or bytes.
const BATCH_DOCUMENTS: usize = 1_000;
const BATCH_BYTES: usize = 4 << 20;

/// What a load does if an `_id` already exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// The stored document stays
    #[default]
    Insert,
    /// The stored document is replaced
    Upsert,
    /// The fields are added to the stored document, or replace its fields
    Merge,
}

/// Counts of the documents of a source by what was done with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) inserted: u64,
    /// Documents that replaced or changed a stored one.
    pub(crate) changed: u64,
    /// Documents that were refused as duplicates of a stored `_id` or unique value.
    pub(crate) existing: u64,
    /// Documents that could not be read or stored.
    pub(crate) failed: u64,
    /// Indexes that could not be created, and options of collections that have no equivalent.
    pub(crate) dropped: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.inserted += other.inserted;
        self.changed += other.changed;
        self.existing += other.existing;
        self.failed += other.failed;
        self.dropped += other.dropped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} inserted", self.inserted)?;
        let parts = [
            (self.changed, "changed"),
            (self.existing, "existing"),
            (self.failed, "failed"),
            (self.dropped, "indexes or options dropped"),
        ];
        for (count, what) in parts {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

/// Why a document was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Its `_id` or unique values are stored already.
    Existing,
    Failed,
}

/// A document that was not stored: its position in the batch, and why.
type Refusal = (usize, Failure);

/// Collects documents and writes them. `P` is the place of a document, which reports name.
pub(crate) struct Loader<P> {
    target: Endpoint,
    collection: String,
    mode: Mode,
    on_signal: OnSignal,
    documents: Vec<RawDocumentBuf>,
    places: Vec<P>,
    bytes: usize,
    pub(crate) tally: Tally,
}

impl<P> Loader<P> {
    pub(crate) fn new(target: &Endpoint, collection: &str, mode: Mode, on_signal: OnSignal) -> Self {
        Self {
            target: target.clone(),
            collection: collection.to_owned(),
            mode,
            on_signal,
            documents: Vec::new(),
            places: Vec::new(),
            bytes: 0,
            tally: Tally::default(),
        }
    }

    /// Adds a document. When the batch is full it is written; `report` is called for each document that is refused.
    ///
    /// # Errors
    /// Fails if the storage or the server fails.
    pub(crate) fn add(
        &mut self,
        place: P,
        document: RawDocumentBuf,
        report: impl FnMut(&P, Refused, &Failure),
    ) -> Result<()> {
        self.bytes += document.as_bytes().len();
        self.documents.push(document);
        self.places.push(place);
        if self.documents.len() >= BATCH_DOCUMENTS || self.bytes >= BATCH_BYTES { self.write(report) } else { Ok(()) }
    }

    /// Writes the batch.
    ///
    /// # Errors
    /// Fails if the storage or the server fails.
    pub(crate) fn write(&mut self, mut report: impl FnMut(&P, Refused, &Failure)) -> Result<()> {
        let (documents, places) = (std::mem::take(&mut self.documents), std::mem::take(&mut self.places));
        self.bytes = 0;
        if documents.is_empty() {
            return Ok(());
        }
        let refused = match (self.target.clone(), self.mode) {
            (Endpoint::Embedded(database), Mode::Insert) => {
                self.insert(&database.collection(&self.collection), &documents)?
            }
            (Endpoint::Embedded(database), Mode::Upsert | Mode::Merge) => {
                self.put(&database.collection(&self.collection), &documents)?
            }
            (Endpoint::Server(server), Mode::Insert) => {
                let done = server.insert(&self.collection, &documents, self.on_signal)?;
                self.tally.inserted += (documents.len() - done.refused.len()) as u64;
                done.refused
            }
            (Endpoint::Server(server), Mode::Upsert | Mode::Merge) => self.put_on(&server, &documents)?,
        };
        for (index, failure) in refused {
            let why = if failure.is_duplicate() { Refused::Existing } else { Refused::Failed };
            match why {
                Refused::Existing => self.tally.existing += 1,
                Refused::Failed => self.tally.failed += 1,
            }
            if let Some(place) = places.get(index) {
                report(place, why, &failure);
            }
        }
        Ok(())
    }

    fn insert(
        &mut self,
        collection: &Collection<RawDocumentBuf>,
        documents: &[RawDocumentBuf],
    ) -> Result<Vec<Refusal>> {
        let result = collection.insert_many(documents).ordered(false).bypass_empty_ts_replacement(true).run()?;
        self.tally.inserted += result.inserted_ids.len() as u64;
        Ok(result.errors.into_iter().map(|refused| (refused.index, refused.error.into())).collect())
    }

    /// Replaces, inserts or merges all documents at once; one by one if one of them is refused. Returns the refused ones.
    fn put(&mut self, collection: &Collection<RawDocumentBuf>, documents: &[RawDocumentBuf]) -> Result<Vec<Refusal>> {
        let mut put = |documents: &[RawDocumentBuf]| {
            let result = match self.mode {
                Mode::Merge => collection.merge_many(documents),
                Mode::Insert | Mode::Upsert => collection.upsert_many(documents),
            }?;
            self.tally.inserted += result.inserted;
            self.tally.changed += result.matched;
            Ok(())
        };
        let is_refusal = |error: &slate_core::Error| {
            let kind = error.kind();
            matches!(kind, ErrorKind::Invalid | ErrorKind::DuplicateKey | ErrorKind::TooLarge | ErrorKind::Unsupported)
        };
        match put(documents) {
            Ok(()) => return Ok(Vec::new()),
            Err(error) if !is_refusal(&error) => return Err(error.into()),
            Err(_) => {}
        }
        let mut refused = Vec::new();
        for (index, document) in documents.iter().enumerate() {
            match put(std::slice::from_ref(document)) {
                Ok(()) => {}
                Err(error) if is_refusal(&error) => refused.push((index, error.into())),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(refused)
    }

    /// Writes the documents of a batch by commands with at most [`BATCH_BYTES`] of documents. A single document that exceeds this gets a
    /// command of its own.
    fn put_on(&mut self, server: &Server, documents: &[RawDocumentBuf]) -> Result<Vec<Refusal>> {
        let (mut refused, mut first) = (Vec::new(), 0);
        while let Some(rest) = documents.get(first..).filter(|rest| !rest.is_empty()) {
            let mut bytes = 0;
            let fitting = rest.iter().take_while(|document| {
                let is_first = bytes == 0;
                bytes += document.as_bytes().len();
                is_first || bytes <= BATCH_BYTES
            });
            let updates = fitting.map(|document| update(document, self.mode)).collect::<Result<Vec<Document>>>()?;
            let number_of_updates = updates.len();
            let command = doc! { "update": &self.collection, "updates": updates, "ordered": false };
            let reply = server.write(&command)?;
            let inserted = reply.get_array("upserted").map_or(0, Vec::len) as u64;
            self.tally.inserted += inserted;
            self.tally.changed += number(&reply, "n").saturating_sub(inserted);
            refused.extend(refusals(&reply).map(|(index, failure)| (first + index, failure)));
            first += number_of_updates;
        }
        Ok(refused)
    }
}

/// Returns the statement of an `update` that replaces, inserts or merges a document. A document without `_id` gets an ObjectId.
fn update(document: &RawDocumentBuf, mode: Mode) -> Result<Document> {
    let mut document = Document::try_from(document).map_err(|error| Failure::new(error.to_string()))?;
    let id = document.get("_id").cloned().unwrap_or_else(|| {
        let id = Bson::ObjectId(ObjectId::new());
        let fields = std::mem::replace(&mut document, doc! { "_id": id.clone() });
        document.extend(fields);
        id
    });
    let change = match mode {
        // The names of fields are literal: a dot or a `$` is part of the name.
        Mode::Merge => vec![doc! { "$replaceWith": { "$mergeObjects": ["$$ROOT", { "$literal": document }] } }].into(),
        Mode::Insert | Mode::Upsert => Bson::Document(document),
    };
    Ok(doc! { "q": { "_id": { "$eq": id } }, "u": change, "upsert": true })
}

/// Returns the positions and errors of the statements that a reply lists as refused.
pub(crate) fn refusals(reply: &Document) -> impl Iterator<Item = Refusal> + '_ {
    let errors = reply.get_array("writeErrors").into_iter().flatten().filter_map(Bson::as_document);
    errors.map(|error| {
        let message = error.get_str("errmsg").unwrap_or_default().to_owned();
        let index = usize::try_from(number(error, "index")).unwrap_or(usize::MAX);
        let code = error.get_i32("code").unwrap_or_default();
        let details = error.get_document("errInfo").ok().cloned();
        (index, Failure::replied(message, code, error.get_str("codeName").unwrap_or_default(), details))
    })
}
