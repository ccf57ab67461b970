//! What a plan reads, for uses that need no nodes: the summary of the plan, and the counts of index uses.

use std::sync::Arc;

use slate_query::interval::IntervalSet;

use super::{IndexScan, Node, Plan};
use crate::{catalog::CollectionInfo, metrics::PlanSummary};

/// Where the rows of a plan come from.
pub(crate) enum Read<'p> {
    /// All records, or those within bounds on `_id`.
    Records(Option<&'p IntervalSet>),
    /// The keys of [`Records`](Self::Records).
    KeysOfRecords(Option<&'p IntervalSet>),
    /// The records of these `_id`s.
    Points(&'p IntervalSet),
    /// The entries of an index, in MongoDB's stage of this name.
    Entries(&'static str, &'p IndexScan),
}

impl Plan {
    /// Returns how the plan reads its records, as MongoDB's `planSummary`. It must be cheap, because every query has one.
    pub(crate) fn summary(&self) -> PlanSummary {
        let mut summaries = Vec::new();
        self.each_read(&mut |read| {
            summaries.push(match read {
                Read::Records(None) => PlanSummary::Stage("COLLSCAN"),
                Read::Records(Some(_)) => PlanSummary::Stage("CLUSTERED_IXSCAN"),
                Read::KeysOfRecords(_) => PlanSummary::Stage("COUNT_SCAN { _id: 1 }"),
                Read::Points(points) if points.as_point().is_some() => PlanSummary::LOOKUP,
                Read::Points(_) => PlanSummary::Stage("IXSCAN { _id: 1 }"),
                Read::Entries(name, scan) => PlanSummary::Index(name, Arc::clone(&scan.index) as _),
            });
        });
        match summaries.pop() {
            None => PlanSummary::Stage("EOF"),
            Some(only) if summaries.is_empty() => only,
            Some(last) => PlanSummary::Several(summaries.into_iter().chain([last]).collect()),
        }
    }

    /// Counts one use of each index that the plan reads, or one scan of the collection.
    pub(crate) fn count_uses(&self, collection: &CollectionInfo) {
        let mut counted = Vec::new();
        self.each_read(&mut |read| {
            let (keyspace, uses) = match read {
                Read::Records(None) => (collection.records, &collection.uses.scans),
                Read::Records(Some(_)) | Read::KeysOfRecords(Some(_)) | Read::Points(_) => {
                    (collection.records, &collection.uses.ids)
                }
                Read::Entries(_, scan) => (scan.index.keyspace, &*scan.index.uses),
                Read::KeysOfRecords(None) => return,
            };
            // An index is used once, however many of its ranges are read.
            if !counted.contains(&keyspace) {
                counted.push(keyspace);
                uses.add();
            }
        });
    }
}
