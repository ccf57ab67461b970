use std::sync::Arc;

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    filter::Ties,
    raw::{Doc, OwnedValue},
    update::{Context, EmptyTimestamps, Update, UsesPosition},
};
use slate_store::{Transaction, View};

use super::{Reads, Session, insert::InsertMode, prepare::check_size};
use crate::{
    Error, Result, ReturnDocument,
    call_context::CallContext,
    catalog::{CollectionInfo, IndexInfo},
    clock,
    exec::{self, Resources, Target},
    plan::Query,
};

/// A parsed update of one or many documents.
#[derive(Debug)]
pub(crate) struct UpdateRequest {
    pub(crate) query: Query,
    pub(crate) update: Update,
    pub(crate) target: Target,
    /// Whether a document, built from the filter's equalities and the update, is inserted if none matches.
    pub(crate) upsert: bool,
    pub(crate) now_millis: i64,
    /// Which version of the document to return, for an update of one document.
    pub(crate) shows: Option<ReturnDocument>,
}

/// The accepted kinds of updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateKind {
    /// Any update except a replacement.
    Operators,
    /// A replacement only.
    Replacement,
    /// Any update; the first field of a document shows whether it is a replacement.
    Either,
}

impl UpdateRequest {
    /// Fails with `FailedToParse` (9) if the update is not of this kind, and for a replacement of several documents with [`UpdateKind::Either`].
    pub(crate) fn new(query: Query, update: Update, kind: UpdateKind, target: Target, upsert: bool) -> Result<Self> {
        let fault = match (kind, update.is_replacement()) {
            (UpdateKind::Operators, true) => "the update holds no operators; to replace a document, use replace_one",
            (UpdateKind::Replacement, false) => "the replacement holds update operators",
            (UpdateKind::Either, true) if target == Target::All => {
                "multi update is not supported for replacement-style update"
            }
            _ => {
                return Ok(Self { query, update, target, upsert, now_millis: clock::now_millis(), shows: None });
            }
        };
        Err(Error::invalid(Code::FAILED_TO_PARSE, fault))
    }
}

/// The result of an update.
#[derive(Debug, Default)]
pub(crate) struct UpdateOutcome {
    pub(crate) matched: u64,
    pub(crate) modified: u64,
    pub(crate) upserted: Option<OwnedValue>,
    /// The requested version of the document; `None` if it does not exist.
    pub(crate) shown: Option<Vec<u8>>,
}

impl<T: Transaction> Session<T> {
    /// Updates the request's targets; an upsert that finds none inserts a document. The call is atomic.
    pub(crate) fn update(&mut self, name: &str, request: &UpdateRequest, call: &CallContext) -> Result<UpdateOutcome> {
        let call = &self.limited(call);
        call.during(|| self.update_limited(name, request, call))
    }

    fn update_limited(&mut self, name: &str, request: &UpdateRequest, call: &CallContext) -> Result<UpdateOutcome> {
        self.begin_call()?;
        let mut outcome = UpdateOutcome::default();
        self.reads(name, Reads::Matches(&request.query.filter))?;
        if let Some(collection) = self.written(name)? {
            let mut changes = self.change_set(&collection, call);
            if request.update.is_replacement() {
                changes.log_replacements();
            }
            self.visit_targets(&collection, &request.query, request.target, call, |key, old| {
                outcome.matched += 1;
                let new = changed(old, request, call.empty_timestamps)?;
                if let Some(new) = &new {
                    outcome.modified += 1;
                    let affects = |index: &IndexInfo, _: Doc<'_>| affects(&request.update, index);
                    changes.replace(&collection, key, old, Doc::new(new), affects)?;
                    changes.spill_if_full()?;
                }
                outcome.shown = request.shows.map(|version| match (version, new) {
                    (ReturnDocument::After, Some(new)) => new,
                    _ => old.bytes().to_vec(),
                });
                Ok(())
            })?;
            // After `check_and_apply` the call can no longer be interrupted. Without a match nothing is applied, so that an upsert can still be
            // interrupted.
            if outcome.matched > 0 {
                self.check_and_apply(&collection, changes, call)?;
            }
        }
        if outcome.matched == 0 && request.upsert {
            self.upsert(name, request, &mut outcome, call)?;
        }
        Ok(outcome)
    }

    /// Calls `visitor` with the key and the document of each target. Half of the call's memory is left for the changes that `visitor` collects.
    pub(super) fn visit_targets(
        &self,
        collection: &CollectionInfo,
        query: &Query,
        target: Target,
        call: &CallContext,
        visitor: impl FnMut(&[u8], Doc<'_>) -> Result<()>,
    ) -> Result<()> {
        let memory = self.memory().of(call.memory).shared_by(2);
        let resources = Resources::tallied(call, memory, self.catalog(), Arc::clone(self.tally()));
        exec::visit_targets(query, &self.view(), collection, target, &resources, visitor)
    }

    fn upsert(
        &mut self,
        name: &str,
        request: &UpdateRequest,
        outcome: &mut UpdateOutcome,
        call: &CallContext,
    ) -> Result<()> {
        let context = Context::insert(request.now_millis)
            .with_timestamp(clock::timestamp(request.now_millis))
            .with_empty_timestamps(call.empty_timestamps);
        let document = request.update.upsert(&request.query.filter, &context).map_err(Error::from)?;
        let document = RawDocumentBuf::from_bytes(document).map_err(Error::conversion)?;
        // `upsert` has already handled the empty timestamps of a replacement.
        let call = &CallContext { empty_timestamps: EmptyTimestamps::Kept, ..call.clone() };
        let inserted = self.insert(name, std::slice::from_ref(&document), InsertMode::AllOrNone, call)?;
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
fn changed(old: Doc<'_>, request: &UpdateRequest, empty_timestamps: EmptyTimestamps) -> Result<Option<Vec<u8>>> {
    let position = match request.update.needs_position() {
        UsesPosition::Yes => request.query.filter.positional(old, Ties::First).flatten(),
        UsesPosition::No => None,
    };
    let context = Context::modify(request.now_millis, position)
        .with_timestamp(clock::timestamp(request.now_millis))
        .with_empty_timestamps(empty_timestamps);
    let new = request.update.apply(old, &context).map_err(Error::from)?;
    if let Some(new) = &new {
        check_size(new)?;
    }
    Ok(new)
}

/// Returns whether the update can change the index's entries. A partial index's condition can depend on any field, and a wildcard
/// index contains any.
fn affects(update: &Update, index: &IndexInfo) -> bool {
    index.partial.is_some()
        || index.wildcard.is_some()
        || index.pattern.fields().iter().any(|(path, _)| update.touches(path))
}
