use bson::Bson;

use crate::write::PutOutcome;

/// The result of [`Collection::upsert_many`](crate::Collection::upsert_many) or
/// [`Collection::merge_many`](crate::Collection::merge_many).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct UpsertManyResult {
    /// Number of documents whose `_id` was stored already.
    pub matched: u64,
    /// Number of those that changed the stored document.
    pub modified: u64,
    /// Number of inserted documents.
    pub inserted: u64,
    /// The `_id` of each document, in the caller's order, as stored.
    pub ids: Vec<Bson>,
}

impl UpsertManyResult {
    pub(crate) fn of(outcome: PutOutcome) -> Self {
        let PutOutcome { matched, modified, inserted, ids } = outcome;
        Self { matched, modified, inserted, ids: ids.iter().filter_map(|id| id.as_value().to_bson()).collect() }
    }
}
