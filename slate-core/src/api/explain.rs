use std::{fmt, time::Duration};

use bson::{Document, doc};

use crate::{
    engine::Explained,
    plan::{Drawing, Measures, Stage},
};

/// The plan of a question: [`Display`](fmt::Display) draws it as a tree, [`Explain::to_document`] gives it as BSON.
///
/// ```text
/// PROJECT { name: 1 }
/// └─ LIMIT 50
///    └─ FILTER { city: "Oslo" }
///       └─ FETCH users
///          └─ INDEX SCAN age_1 forward: age [21, ∞)
/// ```
///
/// Of a question that was run, too ([`Find::explain_analyze`](crate::Find::explain_analyze)), it tells what each node
/// did: the rows it handed on, the keys and documents it looked at and their bytes, what it put into temporary files and
/// in how many runs, and the time until it was done, its inputs' included.
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
    drawn: String,
    plan: Document,
    executed: Option<Executed>,
    candidates: usize,
}

/// What running the plan did: each node and all of them.
#[derive(Clone, Debug, Default)]
struct Executed {
    document: Document,
    stats: ExecutionStats,
}

/// What is told of a question, in the terms of MongoDB's `explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Its plan.
    QueryPlanner,
    /// Its plan and, having run it, what its nodes did.
    ExecutionStats,
}

/// What running a question took, all its nodes together.
///
/// Keys, documents and bytes depend on the plan and the data alone: they are the same on every store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExecutionStats {
    /// Rows handed out. A count hands out one, different values one each.
    pub rows: u64,
    /// Keys looked at: entries of indexes, `_id`s that were asked for, and keys that were only counted.
    pub keys_examined: u64,
    /// Documents read.
    pub documents_examined: u64,
    /// The bytes of these documents, and of the entries' keys and values.
    pub bytes_read: u64,
    /// How often memory was full, and what it held was put into a temporary file.
    pub spills: u64,
    /// Bytes written to temporary files.
    pub spilled_bytes: u64,
    /// From opening the plan to its last row.
    pub time: Duration,
}

impl Explain {
    pub(crate) fn new(collection: &str, explained: Explained) -> Self {
        let Explained { plan, rules, candidates, analysis } = explained;
        let drawing = Drawing::new(&plan, rules, collection);
        let plan = drawing.describe();
        let Some(analysis) = analysis else {
            return Self { drawn: drawing.draw(), plan, executed: None, candidates };
        };
        let drawing = drawing.measured(&analysis);
        let stats = ExecutionStats::of(analysis.total());
        let executed = Some(Executed { document: drawing.describe(), stats });
        Self { drawn: drawing.draw(), plan, executed, candidates }
    }

    /// The plan as a document: each node with its `stage`, what it does, and its `input` or `inputs`. Where it was run,
    /// each has `nReturned`, `executionTimeMicros`, `keysExamined`, `docsExamined`, `bytesRead`, `spills` and
    /// `spilledBytes` of its own.
    pub fn to_document(&self) -> Document {
        self.executed.as_ref().map_or(&self.plan, |executed| &executed.document).clone()
    }

    /// The plan as a document, without what running it did.
    pub(crate) fn plan(&self) -> &Document {
        &self.plan
    }

    /// What running the question took; `None` where it was not run.
    pub fn execution_stats(&self) -> Option<ExecutionStats> {
        self.executed.as_ref().map(|executed| executed.stats)
    }

    /// Whether the plan reads an index other than the one on `_id`.
    pub fn uses_index(&self) -> bool {
        reads_index(&self.plan)
    }

    /// How many plans could serve the question: what `force` may take, counted from 0.
    #[doc(hidden)]
    pub fn candidates(&self) -> usize {
        self.candidates
    }
}

impl ExecutionStats {
    fn of(total: Measures) -> Self {
        Self {
            rows: total.rows,
            keys_examined: total.keys,
            documents_examined: total.documents,
            bytes_read: total.bytes,
            spills: total.spills,
            spilled_bytes: total.spilled_bytes,
            time: total.time,
        }
    }
}

impl fmt::Display for Explain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.drawn)
    }
}

fn reads_index(node: &Document) -> bool {
    let inputs = node.get_array("inputs").into_iter().flatten().filter_map(bson::Bson::as_document);
    node.get_str("stage").is_ok_and(|stage| stage == Stage::IxScan.name())
        || node.get_document("input").into_iter().chain(inputs).any(reads_index)
}
