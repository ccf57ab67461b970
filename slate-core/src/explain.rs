use std::{fmt, time::Duration};

use bson::Document;

/// The plan of a query: [`Display`](fmt::Display) draws it as a tree, [`Explain::to_document`] returns it as BSON.
///
/// ```text
/// PROJECT { name: 1 }
/// └─ LIMIT 50
///    └─ FILTER { city: "Oslo" }
///       └─ FETCH users
///          └─ INDEX SCAN age_1 forward: age [21, ∞)
/// ```
///
/// With [`ExplainVerbosity::ExecutionStats`](crate::ExplainVerbosity::ExecutionStats) it also shows for each node the
/// rows it returned, the keys and documents it read and their bytes, the bytes and runs it wrote to temporary files,
/// and the time until its end, including its inputs.
///
/// ```text
///   rows    keys  documents     read     time
///     50                              6.06 ms  LIMIT 50
///     50                              6.05 ms  └─ SORT { name: 1 }, top 50
///  2,062                              5.70 ms     └─ FILTER { "city": "Oslo" }
/// 10,310             10,310   2.7 MB  3.90 ms        └─ FETCH users
/// 10,310  10,310             65.3 KB   368 µs           └─ INDEX SCAN age_1 forward: age [77, …)
/// ```
#[derive(Clone, Debug)]
pub struct Explain {
    pub(crate) drawn: String,
    pub(crate) plan: Document,
    pub(crate) shape: PlanShape,
    pub(crate) executed: Option<ExecutedPlan>,
    pub(crate) candidates: usize,
    /// Whether the plan reads an index other than the one on `_id`.
    pub(crate) uses_index: bool,
}

/// The result of executing the plan: the plan with each node's measurements, and their totals.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExecutedPlan {
    pub(crate) document: Document,
    pub(crate) shape: PlanShape,
    pub(crate) stats: ExecutionStats,
}

/// A plan as MongoDB's `explain` shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlanShape {
    /// The stages below a pipeline, as nested documents: `winningPlan`, or `executionStages` with measures.
    pub(crate) plan: Document,
    /// The stages of a pipeline after the plan, in the order of execution.
    pub(crate) stages: Vec<Document>,
    /// The rows that the plan below the pipeline returned, and the keys and documents that it read.
    pub(crate) rows: u64,
    pub(crate) keys: u64,
    pub(crate) documents: u64,
}

/// The totals of executing a query, over all nodes of its plan.
///
/// Keys, documents and their bytes depend only on the plan and the data: they are the same on every store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecutionStats {
    /// Rows returned. A count returns one row; distinct values are one row each.
    pub rows: u64,
    /// Keys read: index entries, `_id`s that were looked up, and keys that were only counted.
    pub keys_examined: u64,
    /// Documents read.
    pub documents_examined: u64,
    /// The bytes of these documents, and of the entries' keys and values.
    pub bytes_read: u64,
    /// The runs of rows written to temporary files because memory was full.
    pub spills: u64,
    /// Bytes written to temporary files.
    pub spilled_bytes: u64,
    /// The bytes that the store read from its files because its own cache did not have them; the operating system may have had them in memory. The
    /// number depends on earlier reads. On redb, it includes simultaneous reads of other threads. On a store on a network, the bytes of keys and
    /// values received. `None` if the store does not know. 0 in memory.
    pub storage_bytes: Option<u64>,
    /// The round trips to the machines of a store on a network; simultaneous ones count as one. `None` on other stores.
    pub round_trips: Option<u64>,
    /// The estimated number of requests in these round trips; one round trip can contain several. `None` on stores that do not count them.
    pub requests: Option<u64>,
    /// Time from opening the plan to its last row.
    pub time: Duration,
}

impl Explain {
    /// Returns the plan as a document: each node with its `stage`, its parameters, and its `input` or `inputs`. If the plan
    /// was executed, each also has `nReturned`, `executionTimeMicros`, `keysExamined`, `docsExamined`, `bytesRead`, `spills` and
    /// `spilledBytes` of its own.
    pub fn to_document(&self) -> Document {
        self.executed.as_ref().map_or(&self.plan, |executed| &executed.document).clone()
    }

    /// Returns the plan as MongoDB's `explain` shows it.
    pub(crate) fn shape(&self) -> &PlanShape {
        &self.shape
    }

    /// Returns MongoDB's form of the plan with measurements; `None` if the plan was not executed.
    pub(crate) fn executed_shape(&self) -> Option<&PlanShape> {
        self.executed.as_ref().map(|executed| &executed.shape)
    }

    /// Returns the totals of the execution; `None` if the plan was not executed.
    pub fn execution_stats(&self) -> Option<ExecutionStats> {
        self.executed.as_ref().map(|executed| executed.stats)
    }

    /// Returns whether the plan reads an index other than the one on `_id`.
    pub fn uses_index(&self) -> bool {
        self.uses_index
    }

    /// Returns the number of candidate access paths that the planner compared.
    pub fn candidates(&self) -> usize {
        self.candidates
    }
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.drawn)
    }
}
