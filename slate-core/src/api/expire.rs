use bson::DateTime;

use crate::{
    Result,
    api::setters::setters,
    call::{DatabaseHandle, Scope, Writer},
    call_context::CallContext,
    clock,
};

/// Maximum number of documents that a transaction deletes: a short transaction conflicts less with writers of the same documents.
const ROUND: u64 = 1_000;

/// Deletes expired documents; see [`Database::expire`](crate::Database::expire).
#[must_use = "nothing is deleted until `run`"]
pub struct Expire {
    database: DatabaseHandle,
    now: Option<DateTime>,
    limit: u64,
    call: CallContext,
}

/// The result of [`Database::expire`](crate::Database::expire).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expired {
    /// Number of deleted documents.
    pub documents: u64,
    /// Number of transactions that deleted them.
    pub rounds: u64,
    /// Whether the limit ended the call, so that more documents may have expired.
    pub is_limited: bool,
}

impl Expire {
    pub(crate) fn new(database: DatabaseHandle) -> Self {
        let call = CallContext::begin(database.limits());
        Self { database, now: None, limit: u64::MAX, call }
    }

    /// Deletes the documents that have expired at this time instead of now.
    pub fn at(mut self, now: DateTime) -> Self {
        self.now = Some(now);
        self
    }

    /// Deletes at most this many documents.
    pub fn limit(mut self, documents: u64) -> Self {
        self.limit = documents;
        self
    }

    setters! { call: deadline, cancel }

    /// Deletes the documents, in transactions of at most a thousand. A document that was changed meanwhile, so that it has not expired, stays. If the
    /// call is interrupted, completed transactions remain. Then trims the log of changes, if there is one and [`limit`](Self::limit) did not end the
    /// call.
    ///
    /// # Errors
    /// Fails as a write does.
    pub fn run(self) -> Result<Expired> {
        self.call.check()?;
        let now = self.now.map_or_else(clock::now_millis, DateTime::timestamp_millis);
        let catalog = self.database.catalog()?;
        let scope = Scope::Database(self.database);
        let mut expired = Expired::default();
        for collection in catalog.collections() {
            for index in collection.indexes.iter().filter(|index| index.expire_after.is_some()) {
                loop {
                    let left = self.limit - expired.documents;
                    if left == 0 {
                        return Ok(Expired { is_limited: true, ..expired });
                    }
                    let round = scope.write(&self.call, |writer: &mut dyn Writer| {
                        writer.expire(&collection.name, &index.name, now, left.min(ROUND))
                    })?;
                    expired.documents += round.deleted;
                    expired.rounds += u64::from(round.deleted > 0);
                    // A full round that deletes nothing, because entries are damaged, would find the same entries again.
                    if !round.is_full || round.deleted == 0 {
                        break;
                    }
                }
            }
        }
        if catalog.change_log().is_some() {
            while scope.write(&self.call, |writer| writer.trim_change_log(now))? {}
        }
        Ok(expired)
    }
}

crate::debug::shown! { self: Expire { now: self.now, limit: self.limit } }
