use bson::Bson;

use crate::write::PutOutcome;

/// What [`Collection::upsert_many`](crate::Collection::upsert_many) or
/// [`Collection::merge_many`](crate::Collection::merge_many) did.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PutManyResult {
    /// How many documents met one that was there already.
    pub matched: u64,
    /// How many of them changed it.
    pub modified: u64,
    /// How many were inserted.
    pub inserted: u64,
    /// The `_id` of each document, in their order, as it is stored.
    pub ids: Vec<Bson>,
}

impl PutManyResult {
    pub(crate) fn of(outcome: PutOutcome) -> Self {
        let PutOutcome { matched, modified, inserted, ids } = outcome;
        Self { matched, modified, inserted, ids: ids.iter().filter_map(|id| id.as_value().to_bson()).collect() }
    }
}
