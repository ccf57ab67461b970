use std::fmt;

use serde::{Deserialize, Serialize};

/// Declares the kinds, with their names in reports.
macro_rules! kinds {
    ($($(#[$documentation:meta])* $kind:ident $name:literal,)*) => {
        /// The kinds of operations that [`Metrics`](crate::Metrics) counts separately.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum OperationKind {
            $($(#[$documentation])* $kind,)*
        }

        impl OperationKind {
            /// Every kind, in order.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$kind),*];

            /// Returns the name of the kind in reports: `find_by_id`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

kinds! {
    /// `find` and `find_one`.
    Find "find",
    /// `find_by_id`.
    FindById "find_by_id",
    /// `count_documents` and `estimated_document_count`.
    Count "count",
    /// `distinct`.
    Distinct "distinct",
    /// `aggregate`.
    Aggregate "aggregate",
    /// `explain`.
    Explain "explain",
    /// `insert_one` and `insert_many`.
    Insert "insert",
    /// `update_one`, `update_many`, `replace_one`, `find_one_and_update` and `find_one_and_replace`.
    Update "update",
    /// `delete_one`, `delete_many` and `find_one_and_delete`.
    Delete "delete",
    /// `upsert_many` and `merge_many`.
    Upsert "upsert",
    /// `bulk_write`.
    BulkWrite "bulk_write",
    /// A round of an index build: one for a small collection, several for a large one.
    IndexBuild "index_build",
    /// Creating, changing, renaming and dropping collections and views; changing and dropping indexes; setting the log of changes.
    Definition "definition",
    /// `stats` and `verify` of a collection.
    Inspection "inspection",
    /// The commit of a transaction: one that the caller began, or that of a single write.
    Commit "commit",
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
