use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use bson::{Bson, RawDocument};

use crate::{
    Error, Result, api::setters::setters, call::Scope, call_context::CallContext, document::borrowed, write::InsertMode,
};

/// An insertion of documents, in one transaction: all of them or none. With [`InsertMany::ordered`], refused documents
/// are reported instead; a crash leaves all others or none. See
/// [`Collection::insert_many`](crate::Collection::insert_many).
#[must_use = "nothing is inserted until `run`"]
pub struct InsertMany<'d> {
    scope: Scope,
    collection: Arc<str>,
    documents: Vec<Result<Cow<'d, RawDocument>>>,
    mode: InsertMode,
    call: CallContext,
}

/// The result of an [`InsertMany`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct InsertManyResult {
    /// The `_id`s of the inserted documents, by the documents' positions.
    pub inserted_ids: BTreeMap<usize, Bson>,
    /// The refused documents, in order. Always empty unless [`InsertMany::ordered`] was called.
    pub errors: Vec<WriteError>,
}

/// A refused document or operation.
#[derive(Debug)]
#[non_exhaustive]
pub struct WriteError {
    /// Position in the caller's list, counted from 0.
    pub index: usize,
    /// The error of the document or operation.
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
    /// Returns the result if no document was refused, else the first error. This undoes nothing: inserted documents remain.
    ///
    /// # Errors
    /// Returns the error of the first refused document.
    pub fn into_result(mut self) -> Result<Self> {
        if self.errors.is_empty() { Ok(self) } else { Err(self.errors.swap_remove(0).error) }
    }
}

impl<'d> InsertMany<'d> {
    pub(crate) fn new(
        scope: Scope,
        collection: &Arc<str>,
        documents: Vec<Result<Cow<'d, RawDocument>>>,
        call: CallContext,
    ) -> Self {
        Self { scope, collection: Arc::clone(collection), documents, mode: InsertMode::AllOrNone, call }
    }

    setters! { mode: ordered, all_or_nothing; call: bypass_document_validation, bypass_empty_ts_replacement, deadline, cancel }

    /// Copies the documents, so that the builder borrows nothing.
    #[cfg(feature = "async")]
    pub(crate) fn into_owned(self) -> InsertMany<'static> {
        let documents = self.documents.into_iter().map(|document| Ok(Cow::Owned(document?.into_owned()))).collect();
        InsertMany { documents, scope: self.scope, collection: self.collection, mode: self.mode, call: self.call }
    }

    /// Inserts the documents.
    ///
    /// # Errors
    /// Fails without inserting anything if the storage fails, the time is up, or the collection's name is not valid. Unless [`InsertMany::ordered`]
    /// was called, it also fails if a document is refused: with [`ErrorKind::DuplicateKey`](crate::ErrorKind::DuplicateKey) if its `_id` or a unique
    /// value is stored already, with [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) if it exceeds 16 MiB.
    pub fn run(self) -> Result<InsertManyResult> {
        let mut documents = Vec::with_capacity(self.documents.len());
        // The position in the caller's list of each element of `documents`.
        let mut positions = Vec::with_capacity(self.documents.len());
        let mut errors = Vec::new();
        for (index, document) in self.documents.into_iter().enumerate() {
            match (document, self.mode) {
                (Ok(document), _) => {
                    documents.push(document);
                    positions.push(index);
                }
                (Err(error), InsertMode::AllOrNone) => return Err(error),
                (Err(error), InsertMode::Ordered) => {
                    errors.push(WriteError { index, error });
                    break;
                }
                (Err(error), InsertMode::Unordered) => errors.push(WriteError { index, error }),
            }
        }
        let documents = borrowed(&documents);
        let outcome = self.scope.write(&self.call, |writer| {
            let mut outcome = writer.insert(&self.collection, &documents, self.mode, &self.call)?;
            match (self.mode, outcome.refused.pop()) {
                (InsertMode::AllOrNone, Some((_, error))) => Err(error),
                (_, refused) => {
                    outcome.refused.extend(refused);
                    Ok(outcome)
                }
            }
        })?;
        let position = |at: usize| positions.get(at).copied().unwrap_or(at);
        if self.mode == InsertMode::Ordered && !outcome.refused.is_empty() {
            // The refused document comes before the one that could not be serialized, so the latter is not reported.
            errors.clear();
        }
        errors.extend(outcome.refused.into_iter().map(|(at, error)| WriteError { index: position(at), error }));
        errors.sort_by_key(|error| error.index);
        let ids = outcome.ids.iter().filter_map(|(at, id)| Some((position(*at), id.as_value().to_bson()?)));
        Ok(InsertManyResult { inserted_ids: ids.collect(), errors })
    }
}

crate::debug::shown! { self: InsertMany<'p> { collection: self.collection, mode: self.mode } }
