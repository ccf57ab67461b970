use std::sync::Arc;

use bson::{Bson, Document};

use super::{Analysis, Drawing, Measures, Plan, Stage, shape::shape};
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
    /// Draws the plan, and describes it as a document.
    pub(crate) fn draw(self) -> Explain {
        let Self { collection, plan: tree, rules, candidates, analysis } = self;
        let drawing = Drawing::new(&tree, rules, &collection);
        let plan = drawing.describe();
        let uses_index = reads_index(&plan);
        let planned = shape(&tree, None);
        let Some(analysis) = analysis else {
            return Explain { drawn: drawing.draw(), plan, shape: planned, executed: None, candidates, uses_index };
        };
        let executed = shape(&tree, Some(&analysis));
        let drawing = drawing.measured(&analysis);
        let Analysis { storage_bytes, round_trips, .. } = analysis;
        let stats = ExecutionStats { storage_bytes, round_trips, ..stats(analysis.total()) };
        let executed = Some(ExecutedPlan { document: drawing.describe(), shape: executed, stats });
        Explain { drawn: drawing.draw(), plan, shape: planned, executed, candidates, uses_index }
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
        time: total.time,
    }
}

/// Returns whether the described plan reads an index other than the one on `_id`.
fn reads_index(node: &Document) -> bool {
    let inputs = node.get_array("inputs").into_iter().flatten().filter_map(Bson::as_document);
    node.get_str("stage").is_ok_and(|stage| stage == Stage::IxScan.name())
        || node.get_document("input").into_iter().chain(inputs).any(reads_index)
}
