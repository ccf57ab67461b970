use slate_query::raw::{Doc, SmallBytes};
use slate_store::{PointReader, Transaction, View};

use super::{Reads, Session, changes::Changes, entries::EntryMaker, update::ROUND};
use crate::{
    Result,
    catalog::CollectionInfo,
    exec::{Target, TargetKeys},
    interrupt::Interrupt,
    plan::Query,
};

/// A parsed delete of one or many documents.
#[derive(Clone, Debug)]
pub(crate) struct DeleteRequest {
    pub(crate) query: Query,
    pub(crate) target: Target,
    pub(crate) shows: Shows,
}

/// Whether a delete of one document returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shows {
    Nothing,
    Deleted,
}

/// The result of a delete.
#[derive(Debug, Default)]
pub(crate) struct DeleteOutcome {
    pub(crate) deleted: u64,
    /// The deleted document, if it was requested.
    pub(crate) shown: Option<Vec<u8>>,
}

impl<T: Transaction> Session<T> {
    /// Deletes the matching documents. The call is atomic: if it fails midway, it ends the transaction.
    pub(crate) fn delete(
        &mut self,
        name: &str,
        request: &DeleteRequest,
        interrupt: &Interrupt,
    ) -> Result<DeleteOutcome> {
        self.check_open()?;
        let interrupt = &self.limited(interrupt);
        let mut outcome = DeleteOutcome::default();
        self.reads(name, Reads::Matches(&request.query.filter))?;
        let Some(collection) = self.written(name)? else { return Ok(outcome) };
        let mut keys = self.targets(&collection, &request.query, request.target, interrupt)?;
        let deleted = self.delete_in_rounds(&collection, &mut keys, request.shows, &mut outcome, interrupt);
        if outcome.deleted > 0 {
            self.end_on_error(deleted)?
        } else {
            deleted?
        }
        Ok(outcome)
    }

    fn delete_in_rounds(
        &mut self,
        collection: &CollectionInfo,
        keys: &mut TargetKeys,
        shows: Shows,
        outcome: &mut DeleteOutcome,
        interrupt: &Interrupt,
    ) -> Result<()> {
        loop {
            let round = keys.take(ROUND)?;
            if round.is_empty() {
                return Ok(());
            }
            self.interrupted_in_round(outcome.deleted, interrupt)?;
            self.delete_round(collection, &round, shows, outcome)?;
        }
    }

    fn delete_round(
        &mut self,
        collection: &CollectionInfo,
        keys: &[SmallBytes],
        shows: Shows,
        outcome: &mut DeleteOutcome,
    ) -> Result<()> {
        let mut changes = Changes::default();
        let mut maker = EntryMaker::default();
        {
            let view = self.transaction.view();
            let mut records = view.point_reader()?;
            let wanted: Vec<_> = keys.iter().map(|key| (collection.records, key.as_slice())).collect();
            records.load(&wanted)?;
            for (at, key) in keys.iter().enumerate() {
                let Some(old) = records.loaded(at).map(Doc::stored) else { continue };
                changes.entries(&view, collection, &mut maker, key, (Some(old), None), |_| true)?;
                if shows == Shows::Deleted {
                    outcome.shown = Some(old.bytes().to_vec());
                }
                changes.delete_record(key);
            }
        }
        outcome.deleted += u64::try_from(changes.len()).unwrap_or(u64::MAX);
        self.added(&collection.name, i64::try_from(changes.len()).map_or(i64::MIN, |records| -records));
        changes.apply(self, collection)
    }
}
