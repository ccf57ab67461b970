use std::{collections::BTreeMap, fmt, time::Duration};

use bson::{Bson, RawDocumentBuf};

use crate::{
    CancelToken, Error, Result, api::document::borrowed, interrupt::Interrupt, operation::scope::Scope,
    write::InsertMode,
};

/// An insertion of documents of which some may be refused; see
/// [`Collection::insert_batch`](crate::Collection::insert_batch).
///
/// What is accepted is inserted in one transaction: a crash leaves all of it or nothing.
#[must_use = "nothing is inserted until `run`"]
pub struct InsertMany {
    scope: Scope,
    collection: String,
    documents: Vec<Result<RawDocumentBuf>>,
    mode: InsertMode,
    interrupt: Interrupt,
}

/// What came of an [`InsertMany`].
#[derive(Debug, Default)]
#[non_exhaustive]
#[must_use = "documents may have been refused"]
pub struct InsertManyResult {
    /// The `_id`s of the documents that were inserted, by the places of the documents.
    pub inserted_ids: BTreeMap<usize, Bson>,
    /// The documents that were refused, in their order.
    pub errors: Vec<WriteError>,
}

/// One document, or one operation, that was refused.
#[derive(Debug)]
#[non_exhaustive]
pub struct WriteError {
    /// Its place among those given, counted from 0.
    pub index: usize,
    /// Why it was refused.
    pub error: Error,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "write {}: {}", self.index, self.error)
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl InsertManyResult {
    /// The result if nothing was refused, else the first error. What was inserted stays.
    ///
    /// # Errors
    /// The first document's that was refused.
    pub fn into_result(mut self) -> Result<Self> {
        if self.errors.is_empty() { Ok(self) } else { Err(self.errors.swap_remove(0).error) }
    }
}

impl InsertMany {
    pub(crate) fn new(scope: Scope, collection: &str, documents: Vec<Result<RawDocumentBuf>>) -> Self {
        let interrupt = Interrupt::default();
        Self { scope, collection: collection.into(), documents, mode: InsertMode::Ordered, interrupt }
    }

    /// The documents before the first refused one are inserted, those after it are not tried. So it is if not said.
    pub fn ordered(mut self) -> Self {
        self.mode = InsertMode::Ordered;
        self
    }

    /// Every document that is not refused is inserted.
    pub fn unordered(mut self) -> Self {
        self.mode = InsertMode::Unordered;
        self
    }

    /// Ends, with nothing inserted, when it is not done within this time from now.
    pub fn deadline(mut self, within: Duration) -> Self {
        self.interrupt.within(within);
        self
    }

    /// Ends, with nothing inserted, when the token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.interrupt.by(token);
        self
    }

    /// Inserts the documents. A refused one is told in the result, which is no error of the call.
    ///
    /// # Errors
    /// Where nothing was inserted: the storage failed, the time was up, no collection can have the name.
    pub fn run(self) -> Result<InsertManyResult> {
        let mut documents = Vec::with_capacity(self.documents.len());
        // By their places among those that are documents.
        let mut places = Vec::with_capacity(self.documents.len());
        let mut errors = Vec::new();
        for (index, document) in self.documents.into_iter().enumerate() {
            match document {
                Ok(document) => {
                    documents.push(document);
                    places.push(index);
                }
                Err(error) => {
                    errors.push(WriteError { index, error });
                    if self.mode == InsertMode::Ordered {
                        break;
                    }
                }
            }
        }
        let outcome = self
            .scope
            .write(|writer| writer.insert(&self.collection, &borrowed(&documents), self.mode, &self.interrupt))?;
        let place = |at: usize| places.get(at).copied().unwrap_or(at);
        if self.mode == InsertMode::Ordered && !outcome.refused.is_empty() {
            // It comes before the one that is no document, which so is not tried.
            errors.clear();
        }
        errors.extend(outcome.refused.into_iter().map(|(at, error)| WriteError { index: place(at), error }));
        errors.sort_by_key(|error| error.index);
        let ids = outcome.ids.iter().filter_map(|(at, id)| Some((place(*at), id.as_value().to_bson()?)));
        Ok(InsertManyResult { inserted_ids: ids.collect(), errors })
    }
}

impl fmt::Debug for InsertMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InsertMany").field("collection", &self.collection).field("mode", &self.mode).finish()
    }
}
