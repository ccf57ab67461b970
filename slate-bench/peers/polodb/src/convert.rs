//! Converts documents between the BSON versions of this workload and of PoloDB, by their bytes.

use slate_bench::{Change, harness::Result};

/// Converts a record's or merge's document to PoloDB's BSON.
///
/// # Errors
/// Cannot fail for this workload's documents.
pub(crate) fn document(change: &Change) -> Result<bson2::Document> {
    Ok(bson2::from_slice(change.to_document().as_bytes())?)
}

/// Converts a PoloDB document back.
///
/// # Errors
/// Cannot fail for this workload's documents.
pub(crate) fn checked(document: &bson2::Document) -> Result<bson::Document> {
    Ok(bson::Document::from_reader(bson2::to_vec(document)?.as_slice())?)
}
