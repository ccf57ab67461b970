//! Writes documents into a collection in batches, and counts.

use std::{fmt, ops::AddAssign};

use bson::RawDocumentBuf;
use clap::ValueEnum;
use slate_core::{Collection, ErrorKind};

/// Largest batch, in documents and in bytes. A batch is one transaction.
const BATCH_DOCUMENTS: usize = 1_000;
const BATCH_BYTES: usize = 4 << 20;

/// What happens to a document whose `_id` exists.
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
    /// Documents whose `_id`, or unique values, existed: the stored ones stay.
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
    /// Its `_id`, or its values of a unique index, exist.
    Existing,
    Failed,
}

/// Collects documents and writes them. `P` is the place of a document, which reports name.
pub(crate) struct Loader<P> {
    collection: Collection<RawDocumentBuf>,
    mode: Mode,
    documents: Vec<RawDocumentBuf>,
    places: Vec<P>,
    bytes: usize,
    pub(crate) tally: Tally,
}

impl<P> Loader<P> {
    pub(crate) fn new(collection: Collection<RawDocumentBuf>, mode: Mode) -> Self {
        Self { collection, mode, documents: Vec::new(), places: Vec::new(), bytes: 0, tally: Tally::default() }
    }

    /// Adds a document. When the batch is full it is written; `report` is called for each document that is refused.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub(crate) fn add(
        &mut self,
        place: P,
        document: RawDocumentBuf,
        report: impl FnMut(&P, Refused, &slate_core::Error),
    ) -> slate_core::Result<()> {
        self.bytes += document.as_bytes().len();
        self.documents.push(document);
        self.places.push(place);
        if self.documents.len() >= BATCH_DOCUMENTS || self.bytes >= BATCH_BYTES { self.write(report) } else { Ok(()) }
    }

    /// Writes the batch.
    ///
    /// # Errors
    /// Fails if the storage fails.
    pub(crate) fn write(&mut self, mut report: impl FnMut(&P, Refused, &slate_core::Error)) -> slate_core::Result<()> {
        let (documents, places) = (std::mem::take(&mut self.documents), std::mem::take(&mut self.places));
        self.bytes = 0;
        if documents.is_empty() {
            return Ok(());
        }
        let refused = match self.mode {
            Mode::Insert => self.insert(&documents)?,
            Mode::Upsert | Mode::Merge => self.put(&documents)?,
        };
        for (index, error) in refused {
            let why = if error.kind() == ErrorKind::DuplicateKey { Refused::Existing } else { Refused::Failed };
            match why {
                Refused::Existing => self.tally.existing += 1,
                Refused::Failed => self.tally.failed += 1,
            }
            if let Some(place) = places.get(index) {
                report(place, why, &error);
            }
        }
        Ok(())
    }

    fn insert(&mut self, documents: &[RawDocumentBuf]) -> slate_core::Result<Vec<(usize, slate_core::Error)>> {
        let result = self.collection.insert_many(documents).ordered(false).bypass_empty_ts_replacement(true).run()?;
        self.tally.inserted += result.inserted_ids.len() as u64;
        Ok(result.errors.into_iter().map(|refused| (refused.index, refused.error)).collect())
    }

    /// Writes all documents at once; one by one if one of them is refused.
    fn put(&mut self, documents: &[RawDocumentBuf]) -> slate_core::Result<Vec<(usize, slate_core::Error)>> {
        let mut put = |documents: &[RawDocumentBuf]| {
            let result = match self.mode {
                Mode::Merge => self.collection.merge_many(documents),
                Mode::Insert | Mode::Upsert => self.collection.upsert_many(documents),
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
            Err(error) if !is_refusal(&error) => return Err(error),
            Err(_) => {}
        }
        let mut refused = Vec::new();
        for (index, document) in documents.iter().enumerate() {
            match put(std::slice::from_ref(document)) {
                Ok(()) => {}
                Err(error) if is_refusal(&error) => refused.push((index, error)),
                Err(error) => return Err(error),
            }
        }
        Ok(refused)
    }
}
