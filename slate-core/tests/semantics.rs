//! Tests of `docs/semantics.md`, on every store.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the numbers are small"
)]

mod common;

#[path = "semantics/concurrency.rs"]
mod concurrency;
#[path = "semantics/indexes.rs"]
mod indexes;
#[path = "semantics/keys_and_values.rs"]
mod keys_and_values;
#[path = "semantics/refused_by_name.rs"]
mod refused_by_name;
#[path = "semantics/writes.rs"]
mod writes;

use bson::{Document, RawDocumentBuf};
use slate_core::{Collection, Error};

pub(crate) type Documents = Collection<RawDocumentBuf>;

pub(crate) fn insert(collection: &Documents, documents: impl IntoIterator<Item = Document>) {
    let documents: Vec<RawDocumentBuf> = documents.into_iter().map(|document| common::raw(&document)).collect();
    collection.insert_many(&documents).run().unwrap();
}

#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, Error>, code: i32) -> Error {
    let error = result.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    error
}

/// Returns every document in the order of `_id`.
pub(crate) fn contents(collection: &Documents) -> Vec<Document> {
    let rows = collection.find(bson::doc! {}).sort(bson::doc! { "_id": 1 }).run().unwrap();
    rows.map(|row| (&row.unwrap()).try_into().unwrap()).collect()
}
