//! Option types without logic, used by builders and by the layers that execute them.

use std::time::Duration;

use bson::RawDocumentBuf;

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
    /// Executes the plan and adds the counts and times of each node. Reading the clock for each row makes execution
    /// slower. For an update or a deletion, only the query for its targets is executed: nothing is written.
    ExecutionStats,
}

/// The isolation level of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// A transaction reads one commit. If two transactions write the same document, the first to commit succeeds and the
    /// second conflicts.
    #[default]
    Snapshot,
    /// Like `Snapshot`, but a transaction also conflicts if another one committed a change of what it read: the result
    /// is as if transactions ran one after the other.
    Serializable,
}

/// Which documents the validator of a collection checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ValidationLevel {
    /// No documents.
    Off,
    /// All inserted or changed documents.
    #[default]
    Strict,
    /// Inserted documents, and changed documents that were valid before the change.
    Moderate,
}

/// Whether a write that violates the validator of a collection fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ValidationAction {
    /// The write fails.
    #[default]
    Error,
    /// The write is accepted.
    Warn,
}

impl ValidationLevel {
    /// Returns the level of this name in MongoDB.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Off, Self::Strict, Self::Moderate].into_iter().find(|level| level.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Strict => "strict",
            Self::Moderate => "moderate",
        }
    }
}

impl ValidationAction {
    /// Returns the action of this name in MongoDB. `errorAndLog` is `error`: Slate has no log.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "error" | "errorAndLog" => Some(Self::Error),
            "warn" => Some(Self::Warn),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
        }
    }
}

/// The access path that a query must use. A sparse or partial index restricts the query to the documents of the index.
#[derive(Clone, Debug)]
pub enum Hint {
    /// A scan in the order of `_id`.
    Forward,
    /// A scan in descending order of `_id`.
    Backward,
    /// The index of this name; `_id_` is the one on `_id`.
    Name(String),
    /// The only index on exactly these keys. If several indexes have them, the call fails with `IndexNotFound` (27).
    Keys(RawDocumentBuf),
}

/// The limits of the log of changes; see [`Database::enable_changes`](crate::Database::enable_changes). If either is exceeded, the oldest part of the
/// log is deleted. The log may exceed them by an eighth, so that it is not trimmed with each commit.
///
/// ```
/// # use std::time::Duration;
/// use slate_core::ChangeLog;
///
/// let a_day = ChangeLog::new().bytes(1 << 30).age(Duration::from_secs(86_400));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeLog {
    pub(crate) bytes: u64,
    pub(crate) age: Duration,
}

impl ChangeLog {
    /// Returns limits of 256 MiB and seven days.
    pub fn new() -> Self {
        Self { bytes: 256 << 20, age: Duration::from_secs(7 * 86_400) }
    }

    /// Sets the size in bytes. The last commit stays, whatever its size.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the age, in whole seconds. The age is checked at commits, and by
    /// [`Database::expire`](crate::Database::expire).
    #[must_use]
    pub fn age(mut self, age: Duration) -> Self {
        self.age = Duration::from_secs(age.as_secs());
        self
    }
}

impl Default for ChangeLog {
    fn default() -> Self {
        Self::new()
    }
}

/// The field `fullDocument` in the event of an update. Events of inserts and replacements always contain the document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FullDocument {
    /// The event does not have the field.
    #[default]
    Default,
    /// The document as it is when the event is read; null if it no longer exists.
    UpdateLookup,
    /// The document just after the update, if the collection [keeps images](crate::Collection::keep_images); otherwise null.
    WhenAvailable,
    /// Like `WhenAvailable`, but the stream fails with MongoDB's code 47 instead of null.
    Required,
}

/// The field `fullDocumentBeforeChange` in the event of an update, a replacement or a delete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FullDocumentBeforeChange {
    /// The event does not have the field.
    #[default]
    Off,
    /// The document just before, if the collection [keeps images](crate::Collection::keep_images); otherwise null.
    WhenAvailable,
    /// Like `WhenAvailable`, but the stream fails with MongoDB's code 47 instead of null.
    Required,
}
