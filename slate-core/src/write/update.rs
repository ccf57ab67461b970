use std::sync::Arc;

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Doc, OwnedValue, SmallBytes, Value},
    update::{Context, Update, UsesPosition},
};
use slate_store::{PointReader, Transaction, View};

use super::{
    Reads, Session,
    changes::{Changes, Claims},
    entries::EntryMaker,
    insert::InsertMode,
    prepare::check_size,
};
use crate::{
    Error, Result, ReturnDocument,
    catalog::{CollectionInfo, IndexInfo},
    clock,
    exec::{Target, TargetKeys, targets},
    interrupt::Interrupt,
    plan::Query,
};

/// A parsed update of one or many documents.
#[derive(Debug)]
pub(crate) struct UpdateRequest {
    pub(crate) query: Query,
    pub(crate) update: Update,
    pub(crate) target: Target,
    pub(crate) if_none: IfNone,
    pub(crate) now_millis: i64,
    pub(crate) if_refused: IfRefused,
    /// Which version of the document to return, for an update of one document.
    pub(crate) shows: Option<ReturnDocument>,
}

/// What happens to the transaction if an update of many documents is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfRefused {
    /// It may end, because a large update is applied in parts.
    TransactionMayEnd,
    /// It stays unchanged, because the outcome is held in memory until the update is complete.
    TransactionStays,
}

/// The accepted kinds of updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateKind {
    /// Update operators only; a document without operators would replace the target.
    Operators,
    /// A replacement only.
    Replacement,
    /// Both; commands distinguish them by the first field.
    Either,
}

impl UpdateRequest {
    /// Parses the update. The query is parsed already.
    pub(crate) fn parse(
        query: Query,
        update: Value<'_>,
        array_filters: &[RawDocumentBuf],
        kind: UpdateKind,
        target: Target,
        if_none: IfNone,
    ) -> Result<Self> {
        let array_filters: Vec<Doc<'_>> = array_filters.iter().map(Doc::from).collect();
        let update = Update::parse(update, &array_filters).map_err(Error::from)?;
        let fault = match (kind, update.is_replacement()) {
            (UpdateKind::Operators, true) => "the update holds no operators; to replace a document, use replace_one",
            (UpdateKind::Replacement, false) => "the replacement holds update operators",
            (UpdateKind::Either, true) if target == Target::All => {
                "multi update is not supported for replacement-style update"
            }
            _ => {
                return Ok(Self {
                    query,
                    update,
                    target,
                    if_none,
                    now_millis: clock::now_millis(),
                    if_refused: IfRefused::TransactionMayEnd,
                    shows: None,
                });
            }
        };
        Err(Error::invalid(Code::FAILED_TO_PARSE, fault))
    }
}

/// What happens if no document matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IfNone {
    #[default]
    Nothing,
    /// Inserts a document built from the filter's equalities and the update.
    Upsert,
}

/// The result of an update.
#[derive(Debug, Default)]
pub(crate) struct UpdateOutcome {
    pub(crate) matched: u64,
    pub(crate) modified: u64,
    pub(crate) upserted: Option<OwnedValue>,
    /// The requested version of the document.
    pub(crate) shown: Option<Vec<u8>>,
}

/// Documents that are read and changed together. A call of one round is checked completely before it is applied.
pub(super) const ROUND: usize = 256;

impl<T: Transaction> Session<T> {
    /// Updates the matching documents. The call is atomic: if it fails midway, it ends the transaction.
    pub(crate) fn update(
        &mut self,
        name: &str,
        request: &UpdateRequest,
        interrupt: &Interrupt,
    ) -> Result<UpdateOutcome> {
        self.check_open()?;
        let interrupt = &self.limited(interrupt);
        let mut outcome = UpdateOutcome::default();
        self.reads(name, Reads::Matches(&request.query.filter))?;
        if let Some(collection) = self.written(name)? {
            let mut keys = self.targets(&collection, &request.query, request.target, interrupt)?;
            if !keys.may_exceed(ROUND) || request.if_refused == IfRefused::TransactionStays {
                let mut changes = Changes::default();
                loop {
                    let round = keys.take(ROUND)?;
                    if round.is_empty() {
                        break;
                    }
                    interrupt.check()?;
                    self.change_all(&collection, &round, request, &mut outcome, &mut changes)?;
                }
                self.apply_whole(&collection, changes)?;
            } else {
                let updated = self.update_in_rounds(&collection, keys, request, &mut outcome, interrupt);
                self.end_on_error(updated)?;
            }
        }
        if outcome.matched == 0 && request.if_none == IfNone::Upsert {
            self.upsert(name, request, &mut outcome, interrupt)?;
        }
        Ok(outcome)
    }

    /// Finds the [`TargetKeys`] of a query.
    pub(super) fn targets(
        &self,
        collection: &CollectionInfo,
        query: &Query,
        target: Target,
        interrupt: &Interrupt,
    ) -> Result<TargetKeys> {
        targets(query, &self.transaction.view(), collection, target, &self.resources(query, interrupt))
    }

    /// Applies parts of the update before all of it is known; unique keys are checked at the end.
    fn update_in_rounds(
        &mut self,
        collection: &Arc<CollectionInfo>,
        mut keys: TargetKeys,
        request: &UpdateRequest,
        outcome: &mut UpdateOutcome,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let mut claims = Claims::default();
        loop {
            let round = keys.take(ROUND)?;
            if round.is_empty() {
                break;
            }
            interrupt.check()?;
            let mut changes = Changes::default();
            self.change_all(collection, &round, request, outcome, &mut changes)?;
            changes.take_claims(collection, &mut claims);
            changes.apply(self, collection)?;
        }
        claims.settle(self, collection)
    }

    /// Computes the new documents of these records without writing them.
    fn change_all(
        &mut self,
        collection: &Arc<CollectionInfo>,
        keys: &[SmallBytes],
        request: &UpdateRequest,
        outcome: &mut UpdateOutcome,
        changes: &mut Changes,
    ) -> Result<()> {
        let mut maker = EntryMaker::default();
        {
            let view = self.transaction.view();
            let mut records = view.point_reader()?;
            let wanted: Vec<_> = keys.iter().map(|key| (collection.records, key.as_slice())).collect();
            records.load(&wanted)?;
            for (at, key) in keys.iter().enumerate() {
                let Some(old) = records.loaded(at).map(Doc::stored) else { continue };
                outcome.matched += 1;
                let Some(new) = changed(old, request)? else {
                    outcome.shown = request.shows.map(|_| old.bytes().to_vec());
                    continue;
                };
                outcome.modified += 1;
                let documents = (Some(old), Some(Doc::new(&new)));
                let touched = |index: &IndexInfo| touches(&request.update, index);
                changes.entries(&view, collection, &mut maker, key, documents, touched)?;
                changes.put_record(key, Doc::new(&new));
                outcome.shown = request.shows.map(|form| match form {
                    ReturnDocument::Before => old.bytes().to_vec(),
                    ReturnDocument::After => new,
                });
            }
        }
        self.note(&collection.name, maker.take_notes());
        Ok(())
    }

    fn upsert(
        &mut self,
        name: &str,
        request: &UpdateRequest,
        outcome: &mut UpdateOutcome,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let context = Context::insert(request.now_millis).with_timestamp(clock::timestamp(request.now_millis));
        let document = request.update.upsert(&request.query.filter, &context).map_err(Error::from)?;
        let document = RawDocumentBuf::from_bytes(document).map_err(Error::conversion)?;
        let inserted = self.insert(name, std::slice::from_ref(&document), InsertMode::AllOrNone, interrupt)?;
        if let Some((_, error)) = inserted.refused.into_iter().next() {
            return Err(error);
        }
        outcome.upserted = inserted.ids.into_iter().next().map(|(_, id)| id);
        if let (Some(id), Some(collection), Some(ReturnDocument::After)) =
            (&outcome.upserted, self.catalog().collection(name), request.shows)
        {
            let key = crate::entry::record_key(id.as_value())?;
            outcome.shown = self.view().get(collection.records, &key, |stored| Doc::stored(stored).bytes().to_vec())?;
        }
        Ok(())
    }
}

/// Applies the update to a document. Returns `None` if it changes nothing.
fn changed(old: Doc<'_>, request: &UpdateRequest) -> Result<Option<Vec<u8>>> {
    let position = match request.update.needs_position() {
        UsesPosition::Yes => request.query.filter.positional(old).flatten(),
        UsesPosition::No => None,
    };
    let context = Context::modify(request.now_millis, position).with_timestamp(clock::timestamp(request.now_millis));
    let new = request.update.apply(old, &context).map_err(Error::from)?;
    if let Some(new) = &new {
        check_size(new)?;
    }
    Ok(new)
}

/// Returns whether the update can change the index's entries. A partial index's condition can depend on any field.
fn touches(update: &Update, index: &IndexInfo) -> bool {
    index.partial.is_some() || index.pattern.fields().iter().any(|(path, _)| update.touches(path))
}
