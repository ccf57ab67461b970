use bson::RawDocument;
use slate_store::Keyspace;

use crate::{
    Error, Result,
    api::options::RenameTarget,
    interrupt::Interrupt,
    operation::read_op::outputs,
    write::{
        BuildProgress, BuildRound, BuildStart, BulkOperation, BulkOutcome, DeleteOutcome, DeleteRequest, IndexSpec,
        InsertMode, InsertOutcome, PutKind, PutOutcome, UpdateOutcome, UpdateRequest,
    },
};

/// A write, executed by a transaction. Each variant names the type of its result.
pub(crate) enum WriteOp<'o> {
    /// [`InsertOutcome`].
    Insert { collection: &'o str, documents: &'o [&'o RawDocument], mode: InsertMode, interrupt: &'o Interrupt },
    /// [`UpdateOutcome`].
    Update { collection: &'o str, request: &'o UpdateRequest, interrupt: &'o Interrupt },
    /// [`DeleteOutcome`].
    Delete { collection: &'o str, request: &'o DeleteRequest, interrupt: &'o Interrupt },
    /// [`PutOutcome`].
    Put { collection: &'o str, documents: &'o [&'o RawDocument], kind: PutKind, interrupt: &'o Interrupt },
    /// [`BulkOutcome`].
    Bulk { operations: &'o [(&'o str, BulkOperation)], mode: InsertMode, interrupt: &'o Interrupt },
    /// Whether the collection was created; `false` if it existed.
    CreateCollection(&'o str),
    /// Nothing.
    RenameCollection { from: &'o str, to: &'o str, target: RenameTarget },
    /// Whether the collection existed.
    DropCollection(&'o str),
    /// The index's name, and whether it was created.
    CreateIndex { collection: &'o str, spec: &'o IndexSpec, interrupt: &'o Interrupt, progress: BuildProgress<'o> },
    /// Whether the index existed.
    DropIndex { collection: &'o str, index: &'o str },
    /// Declares an index that later transactions fill: [`BuildStart`].
    BeginBuild { collection: &'o str, spec: &'o IndexSpec },
    /// Fills a declared index from at most `limit` documents: [`BuildRound`].
    BuildRound { keyspace: Keyspace, limit: usize, interrupt: &'o Interrupt },
    /// Drops a declared index. Nothing.
    AbandonBuild(Keyspace),
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
