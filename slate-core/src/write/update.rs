use std::sync::Arc;

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Doc, OwnedValue, SmallBytes, Value},
    update::{Context, Update, UsesPosition},
};
use slate_store::{Points, Transaction, View};

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
    /// Which form of the document it shows, where it is of one document.
    pub(crate) shows: Option<ReturnDocument>,
}

/// What becomes of the transaction where an update of many documents is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfRefused {
    /// It may be over: a large update is applied in parts.
    TransactionMayEnd,
    /// It stays as it was: however large the update is, its outcome is held in memory until all of it is known.
    TransactionStays,
}

/// What the caller may give as an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateKind {
    /// Update operators only: a document without any would replace what it meets.
    Operators,
    /// A replacement only.
    Replacement,
    /// Whichever it is: commands tell the two apart by the first field.
    Either,
}

impl UpdateRequest {
    /// Parses the update; the query is parsed already.
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

/// What happens when no document matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum IfNone {
    #[default]
    Nothing,
    /// A document made of the filter's equalities and the update is inserted.
    Upsert,
}

/// What came of an update.
#[derive(Debug, Default)]
pub(crate) struct UpdateOutcome {
    pub(crate) matched: u64,
    pub(crate) modified: u64,
    pub(crate) upserted: Option<OwnedValue>,
    /// The document that it was asked to show.
    pub(crate) shown: Option<Vec<u8>>,
}

/// So many documents are read and changed together. A call within one round is checked whole before it is applied.
pub(super) const ROUND: usize = 256;

impl<T: Transaction> Session<T> {
    /// Updates the documents that match. The call is atomic: where it fails half-way, the transaction is over.
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

    /// Parts of the update are in place before all of it is known: unique keys are claimed at the end.
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

    /// What the update makes of these records. Nothing is written yet.
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
            let mut records = view.points(collection.records)?;
            let wanted: Vec<&[u8]> = keys.iter().map(SmallBytes::as_slice).collect();
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

/// The document that the update makes of another; `None` where it changes nothing.
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

/// Whether the update can change the index's entries. A partial index's condition may be about any field.
fn touches(update: &Update, index: &IndexInfo) -> bool {
    index.partial.is_some() || index.pattern.fields().iter().any(|(path, _)| update.touches(path))
}
