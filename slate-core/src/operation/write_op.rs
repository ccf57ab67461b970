use bson::RawDocument;
use slate_query::update::EmptyTimestamps;
use slate_store::Keyspace;

use crate::{
    Error, Result,
    api::options::RenameTarget,
    interrupt::Interrupt,
    metrics::Subject,
    operation::read_op::outputs,
    write::{
        BuildProgress, BuildRound, BuildStart, BulkOperation, BulkOutcome, CollectionSpec, DeleteOutcome,
        DeleteRequest, IndexSpec, InsertMode, InsertOutcome, PutKind, PutOutcome, UpdateOutcome, UpdateRequest,
        ValidatorSpec, ViewSpec, Visibility,
    },
};

/// A write, executed by a transaction.
pub(crate) enum WriteOp<'o> {
    /// Inserts documents; the result is an [`InsertOutcome`].
    Insert { collection: &'o str, documents: &'o [&'o RawDocument], mode: InsertMode, interrupt: &'o Interrupt },
    /// Updates documents; the result is an [`UpdateOutcome`].
    Update { collection: &'o str, request: &'o UpdateRequest, interrupt: &'o Interrupt },
    /// Deletes documents; the result is a [`DeleteOutcome`].
    Delete { collection: &'o str, request: &'o DeleteRequest, interrupt: &'o Interrupt },
    /// Upserts or merges documents by `_id`; the result is a [`PutOutcome`].
    Put { collection: &'o str, documents: &'o [&'o RawDocument], kind: PutKind, interrupt: &'o Interrupt },
    /// Executes a bulk write; the result is a [`BulkOutcome`].
    Bulk { operations: &'o [(&'o str, BulkOperation)], mode: InsertMode, interrupt: &'o Interrupt },
    /// Creates a collection; the result is whether it was created, `false` if it existed with the same options.
    CreateCollection { collection: &'o str, spec: &'o CollectionSpec },
    /// Creates a view; the result is whether it was created, `false` if it existed with the same definition.
    CreateView { name: &'o str, spec: &'o ViewSpec },
    /// Replaces a view's definition; no result.
    SetView { name: &'o str, spec: &'o ViewSpec },
    /// Hides or shows an index; the result is whether it was hidden before.
    SetVisibility { collection: &'o str, index: &'o str, visibility: Visibility },
    /// Replaces or removes a collection's validator; no result.
    SetValidator { collection: &'o str, spec: Option<&'o ValidatorSpec> },
    /// Executes a write with options; the result is that of the write.
    With(WriteOptions, Box<WriteOp<'o>>),
    /// Renames a collection; no result.
    RenameCollection { from: &'o str, to: &'o str, target: RenameTarget },
    /// Drops a collection; the result is whether it existed.
    DropCollection(&'o str),
    /// Creates an index; the result is its name, and whether it was created.
    CreateIndex { collection: &'o str, spec: &'o IndexSpec, interrupt: &'o Interrupt, progress: BuildProgress<'o> },
    /// Drops an index; the result is whether it existed.
    DropIndex { collection: &'o str, index: &'o str },
    /// Declares an index that later transactions fill: [`BuildStart`].
    BeginBuild { collection: &'o str, spec: &'o IndexSpec },
    /// Fills a declared index from at most `limit` documents: [`BuildRound`].
    BuildRound { collection: &'o str, keyspace: Keyspace, limit: usize, interrupt: &'o Interrupt },
    /// Drops a declared index; no result.
    AbandonBuild { collection: &'o str, keyspace: Keyspace },
}

impl<'o> WriteOp<'o> {
    /// Returns the collection, unless there are several, and the filter.
    pub(crate) fn subject(&self) -> Subject<'o> {
        match self {
            Self::Update { collection, request, .. } => {
                Subject { collection: Some(collection), filter: Some(&request.query.filter) }
            }
            Self::Delete { collection, request, .. } => {
                Subject { collection: Some(collection), filter: Some(&request.query.filter) }
            }
            Self::Insert { collection, .. }
            | Self::Put { collection, .. }
            | Self::CreateCollection { collection, .. }
            | Self::CreateView { name: collection, .. }
            | Self::SetView { name: collection, .. }
            | Self::SetVisibility { collection, .. }
            | Self::SetValidator { collection, .. }
            | Self::RenameCollection { from: collection, .. }
            | Self::DropCollection(collection)
            | Self::CreateIndex { collection, .. }
            | Self::DropIndex { collection, .. }
            | Self::BeginBuild { collection, .. }
            | Self::BuildRound { collection, .. }
            | Self::AbandonBuild { collection, .. } => Subject::collection(collection),
            Self::With(_, op) => op.subject(),
            Self::Bulk { operations: [(first, _), others @ ..], .. }
                if others.iter().all(|(collection, _)| collection == first) =>
            {
                Subject::collection(first)
            }
            Self::Bulk { .. } => Subject::default(),
        }
    }
}

/// How a write treats the documents that it stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    pub(crate) document_validation: DocumentValidation,
    pub(crate) empty_timestamps: EmptyTimestamps,
}

/// Whether documents are checked by the validators of their collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DocumentValidation {
    #[default]
    Enforced,
    Bypassed,
}

impl WriteOptions {
    /// Applies the builders' setting of the same name.
    pub(crate) fn bypass_document_validation(&mut self, is_bypassed: bool) {
        self.document_validation =
            if is_bypassed { DocumentValidation::Bypassed } else { DocumentValidation::Enforced };
    }

    /// Applies the builders' setting of the same name.
    pub(crate) fn bypass_empty_ts_replacement(&mut self, is_bypassed: bool) {
        self.empty_timestamps = if is_bypassed { EmptyTimestamps::Kept } else { EmptyTimestamps::Current };
    }

    /// Returns the operation with these options.
    pub(crate) fn of(self, op: WriteOp<'_>) -> WriteOp<'_> {
        if self == Self::default() { op } else { WriteOp::With(self, Box::new(op)) }
    }
}

outputs! {
    /// The result of a [`WriteOp`].
    WriteOutput {
        Inserted(InsertOutcome),
        Updated(UpdateOutcome),
        Deleted(DeleteOutcome),
        Put(PutOutcome),
        Bulk(BulkOutcome),
        Flag(bool),
        Index((String, bool)),
        BuildStart(BuildStart),
        BuildRound(BuildRound),
        Done(()),
    }
}

impl WriteOutput {
    /// Returns how many documents were inserted, changed or deleted.
    pub(crate) fn written(&self) -> u64 {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        match self {
            Self::Inserted(outcome) => count(outcome.ids.len()),
            Self::Updated(outcome) => outcome.modified + u64::from(outcome.upserted.is_some()),
            Self::Deleted(outcome) => outcome.deleted,
            Self::Put(outcome) => outcome.modified + outcome.inserted,
            Self::Bulk(outcome) => {
                count(outcome.inserted.len()) + count(outcome.upserted.len()) + outcome.modified + outcome.deleted
            }
            Self::Flag(_) | Self::Index(_) | Self::BuildStart(_) | Self::BuildRound(_) | Self::Done(()) => 0,
        }
    }

    /// Returns whether documents or statements were refused.
    pub(crate) fn has_refusals(&self) -> bool {
        match self {
            Self::Inserted(outcome) => !outcome.refused.is_empty(),
            Self::Bulk(outcome) => !outcome.refused.is_empty(),
            _ => false,
        }
    }
}
