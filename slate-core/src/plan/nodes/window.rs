use bson::doc;

use super::Stage;
use crate::{document::number, plan::shown::MongoStage};

/// Skip and limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) skip: u64,
    pub(crate) limit: Option<u64>,
}

const SKIP: Stage = Stage { name: "SKIP", title: "SKIP" };
const LIMIT: Stage = Stage { name: "LIMIT", title: "LIMIT" };

/// Returns MongoDB's stage for the skip or the limit of a window.
pub(super) fn own_window(stage: Stage, rows: u64) -> MongoStage {
    match stage {
        SKIP => MongoStage::Own("SKIP", doc! { "skipAmount": number(rows) }),
        _ => MongoStage::Own("LIMIT", doc! { "limitAmount": number(rows) }),
    }
}

/// Like [`own_window`], in a pipeline.
pub(in crate::plan) fn pipeline_window(stage: Stage, rows: u64) -> MongoStage {
    MongoStage::Pipeline(if stage == SKIP { "$skip" } else { "$limit" }, number(rows))
}

impl Window {
    /// Returns the limit and the skip with their numbers of rows, in the order in which they are drawn, the root first.
    pub(crate) fn parts(self) -> impl DoubleEndedIterator<Item = (Stage, u64)> {
        let limit = self.limit.map(|limit| (LIMIT, limit));
        limit.into_iter().chain((self.skip > 0).then_some((SKIP, self.skip)))
    }

    /// Returns the window that has the effect of `next` on the rows of this window.
    pub(crate) fn then(self, next: Self) -> Self {
        let left = self.limit.map(|limit| limit.saturating_sub(next.skip));
        let limit = match (left, next.limit) {
            (Some(left), Some(next)) => Some(left.min(next)),
            (left, next) => left.or(next),
        };
        Self { skip: self.skip.saturating_add(next.skip), limit }
    }

    /// Returns the number of rows to find, including those to skip; `None` for all.
    pub(crate) fn reach(self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_add(self.skip))
    }

    pub(crate) fn is_all(self) -> bool {
        self == Self::default()
    }

    /// Returns how many of `rows` are within the window.
    pub(crate) fn count(self, rows: u64) -> u64 {
        rows.saturating_sub(self.skip).min(self.limit.unwrap_or(u64::MAX))
    }
}
