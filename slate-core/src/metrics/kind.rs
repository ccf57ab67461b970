use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds of operations that [`Metrics`](crate::Metrics) counts separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OperationKind {
    /// `find` and `find_one`.
    Find,
    /// `find_by_id`.
    FindById,
    /// `count_documents` and `estimated_document_count`.
    Count,
    /// `distinct`.
    Distinct,
    /// `aggregate`.
    Aggregate,
    /// `explain`.
    Explain,
    /// `insert_one` and `insert_many`.
    Insert,
    /// `update_one`, `update_many`, `replace_one`, `find_one_and_update` and `find_one_and_replace`.
    Update,
    /// `delete_one`, `delete_many` and `find_one_and_delete`.
    Delete,
    /// `upsert_many` and `merge_many`.
    Upsert,
    /// `bulk_write`.
    BulkWrite,
    /// A step of an index build: one for a small collection, several for a large one.
    IndexBuild,
    /// Creating, renaming and dropping collections, dropping indexes.
    Definition,
    /// `stats` and `verify` of a collection.
    Inspection,
    /// The commit of a transaction: one that the caller began, or that of a single write.
    Commit,
}

impl OperationKind {
    /// Every kind, in order.
    pub const ALL: [Self; 15] = [
        Self::Find,
        Self::FindById,
        Self::Count,
        Self::Distinct,
        Self::Aggregate,
        Self::Explain,
        Self::Insert,
        Self::Update,
        Self::Delete,
        Self::Upsert,
        Self::BulkWrite,
        Self::IndexBuild,
        Self::Definition,
        Self::Inspection,
        Self::Commit,
    ];

    /// Returns the name of the kind in reports: `find_by_id`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Find => "find",
            Self::FindById => "find_by_id",
            Self::Count => "count",
            Self::Distinct => "distinct",
            Self::Aggregate => "aggregate",
            Self::Explain => "explain",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Upsert => "upsert",
            Self::BulkWrite => "bulk_write",
            Self::IndexBuild => "index_build",
            Self::Definition => "definition",
            Self::Inspection => "inspection",
            Self::Commit => "commit",
        }
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_the_kinds_in_the_order_of_their_numbers() {
        for (number, kind) in OperationKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, number, "{kind}");
        }
    }
}
