//! Documents of this workload's version of BSON as those of PoloDB's, and back: by their bytes.

use slate_bench::{Change, harness::Result};

/// A record's or a patch's document, as PoloDB takes it.
///
/// # Errors
/// None that this workload's documents could cause.
pub(crate) fn document(change: &Change) -> Result<bson2::Document> {
    Ok(bson2::from_slice(change.to_document().as_bytes())?)
}

/// A document of PoloDB's.
///
/// # Errors
/// None that this workload's documents could cause.
pub(crate) fn checked(document: &bson2::Document) -> Result<bson::Document> {
    Ok(bson::Document::from_reader(bson2::to_vec(document)?.as_slice())?)
}
