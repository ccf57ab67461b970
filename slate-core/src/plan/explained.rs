use std::sync::Arc;

use super::{Analysis, Drawing, Measures, Plan};
use crate::{ExecutionStats, Explain, explain::ExecutedPlan};

/// A plan, the rules that changed it, the number of candidates for its access path, and the measures of its execution,
/// if it was executed.
pub(crate) struct Explained {
    /// The collection that is read. For a view it is the collection that the view reads.
    pub(crate) collection: Arc<str>,
    pub(crate) plan: Plan,
    pub(crate) rules: Vec<&'static str>,
    pub(crate) candidates: usize,
    pub(crate) analysis: Option<Analysis>,
}

impl Explained {
    /// Draws the plan, and describes it as a document. The result is incomplete if the call is cancelled or times out
    /// meanwhile.
    pub(crate) fn draw(self) -> Explain {
        let Self { collection, plan: tree, rules, candidates, analysis } = self;
        let mut drawing = Drawing::new(&tree, rules, &collection);
        let (plan, shape, uses_index) = (drawing.describe(), drawing.shape(), drawing.reads_index());
        let executed = analysis.map(|analysis| {
            drawing.measure(&analysis);
            let Analysis { storage_bytes, round_trips, requests, .. } = analysis;
            let stats = ExecutionStats { storage_bytes, round_trips, requests, ..stats(analysis.total()) };
            ExecutedPlan { document: drawing.describe(), shape: drawing.shape(), stats }
        });
        Explain { drawn: drawing.draw(), plan, shape, executed, candidates, uses_index }
    }
}

fn stats(total: Measures) -> ExecutionStats {
    ExecutionStats {
        rows: total.rows,
        keys_examined: total.keys,
        documents_examined: total.documents,
        bytes_read: total.bytes,
        spills: total.spills,
        spilled_bytes: total.spilled_bytes,
        storage_bytes: None,
        round_trips: None,
        requests: None,
        time: total.time,
    }
}
