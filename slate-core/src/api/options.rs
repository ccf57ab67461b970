//! Option types without logic, used by builders and by the layers that execute them.

/// Whether `find_one_and_update` and `find_one_and_replace` return the document before or after the change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReturnDocument {
    /// The document before the change; `None` if it was inserted.
    #[default]
    Before,
    /// The document after the change.
    After,
}

/// What [`Collection::rename`](crate::Collection::rename) does if a collection already has the new name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RenameTarget {
    /// The rename fails with [`ErrorKind::Exists`](crate::ErrorKind::Exists).
    #[default]
    MustNotExist,
    /// That collection is dropped in the same commit.
    DropExisting,
}

/// How much `explain` reports, in MongoDB's terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExplainVerbosity {
    /// The plan, without executing it.
    #[default]
    QueryPlanner,
    /// Executes the plan and adds what each node did. Reading the clock for each row makes execution slower. For an
    /// update or a deletion, only the query for its targets is executed: nothing is written.
    ExecutionStats,
}

/// What concurrent transactions may not do to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// A transaction reads one commit. If two transactions write the same document, the first to commit succeeds and the
    /// second conflicts.
    #[default]
    Snapshot,
    /// Like `Snapshot`, but a transaction also conflicts if another one has meanwhile changed what it read: the result is
    /// as if transactions ran one after the other.
    Serializable,
}
