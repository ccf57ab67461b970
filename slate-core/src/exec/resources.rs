use std::sync::Arc;

use slate_query::{Code, work};

use super::meter::{Meter, Recorder};
use crate::{
    Error, Result,
    call_context::CallContext,
    catalog::{Catalog, CollectionInfo},
    interrupt::Interrupt,
    metrics::{Activity, PlanSummary, ReportedPlan, Tally},
    plan::{Explained, ForeignView, Node, Plan, Planned, Query, RawPlan, Stage},
    spill::Memory,
};

/// What the nodes of a query share: the interrupt, the memory limit, and the catalog of the view that they read.
#[derive(Clone, Debug)]
pub(crate) struct Resources {
    pub(crate) interrupt: Interrupt,
    pub(super) activity: Option<Activity>,
    pub(crate) memory: Memory,
    pub(super) catalog: Arc<Catalog>,
    /// The views that stages read.
    pub(super) views: Arc<[ForeignView]>,
    pub(super) recorder: Option<Recorder>,
    /// Counts the keys and documents that nodes without a recorder examine.
    pub(crate) tally: Arc<Tally>,
    /// Number of pipeline nodes that read from these nodes, including the nodes of outer pipelines.
    pub(super) above: usize,
}

/// Maximum number of nodes of pipelines that read from each other. Each node calls the node below it, so this bounds
/// the stack: in a build without optimization, one and a half times as many nodes fit into the 2 MiB that Rust gives to
/// a thread.
const MAX_NESTED: usize = 200;

impl Resources {
    /// Resources of a call; `memory` is what its nodes may hold.
    pub(crate) fn new(call: &CallContext, memory: Memory, catalog: &Arc<Catalog>) -> Self {
        let tally = Tally::new(memory.observer());
        Self::tallied(call, memory, catalog, tally)
    }

    /// Resources whose nodes add what they examine to `tally`.
    pub(crate) fn tallied(call: &CallContext, memory: Memory, catalog: &Arc<Catalog>, tally: Arc<Tally>) -> Self {
        call.activity.iter().for_each(|activity| activity.executes(&tally));
        let (interrupt, activity) = (call.interrupt.clone(), call.activity.clone());
        let (catalog, views) = (Arc::clone(catalog), Arc::default());
        Self { interrupt, activity, memory, catalog, views, recorder: None, tally, above: 0 }
    }

    pub(crate) fn with_views(self, views: &Arc<[ForeignView]>) -> Self {
        Self { views: Arc::clone(views), ..self }
    }

    /// Adds to the activity of the call, if any, how the plan reads its records.
    pub(super) fn summarize(&self, summary: impl FnOnce() -> PlanSummary, plan: impl FnOnce() -> Option<ReportedPlan>) {
        if let Some(activity) = &self.activity {
            activity.summarize(summary(), plan);
        }
    }

    /// Records the plan for the activity and for the report of a slow query, counts the indexes that it uses, and returns the plan.
    pub(crate) fn executes(
        &self,
        query: &Query,
        collection: &CollectionInfo,
        Planned { plan, rules }: Planned,
    ) -> Plan {
        plan.count_uses(collection);
        let reported = || {
            let (collection, plan) = (Arc::clone(&collection.name), plan.clone());
            let rules: Vec<&'static str> = query.rules(rules).collect();
            ReportedPlan(Arc::new(move || {
                let (collection, plan, rules) = (Arc::clone(&collection), plan.clone(), rules.clone());
                let explained = Explained { collection, plan, rules, candidates: 0, analysis: None };
                // Even if the deadline has ended the call, its report shows the whole plan.
                work::undivided(|| explained.draw())
            }))
        };
        self.summarize(|| plan.summary(), || Some(reported()));
        self.tally.executes(reported);
        plan
    }

    /// Returns the resources of a plan's nodes: the memory is divided among those that hold rows, and `others`, the number of further
    /// holders of rows. Their number is known in advance, so that spilling does not depend on other queries.
    ///
    /// # Errors
    /// Fails as [`below`](Self::below) does.
    pub(super) fn of_plan(&self, plan: &Plan, others: usize) -> Result<Self> {
        let nodes = match plan {
            Plan::Pipeline { nodes, .. } => nodes.len(),
            _ => 0,
        };
        Ok(Self { memory: self.memory.shared_by(others + plan.holders()), ..self.below(nodes)? })
    }

    /// Like [`of_plan`](Self::of_plan), for the raw tier alone.
    pub(super) fn of_raw_plan(&self, plan: &RawPlan) -> Self {
        Self { memory: self.memory.shared_by(plan.holders()), ..self.clone() }
    }

    /// Returns the resources for the input of a pipeline with this many nodes, which count towards [`MAX_NESTED`].
    ///
    /// # Errors
    /// Fails with 7749501, MongoDB's code for a pipeline that is too long, if with the outer pipelines more than [`MAX_NESTED`] nodes read
    /// from each other.
    pub(super) fn below(&self, nodes: usize) -> Result<Self> {
        let above = self.above + nodes;
        if above > MAX_NESTED {
            let message = format!(
                "a pipeline with its views and the pipelines in its stages has more than {MAX_NESTED} stages that cannot be merged"
            );
            return Err(Error::invalid(Code(7_749_501), message));
        }
        Ok(Self { above, ..self.clone() })
    }

    /// Returns a copy whose nodes report to `recorder`.
    pub(super) fn recorded_by(&self, recorder: &Recorder) -> Self {
        Self { recorder: Some(recorder.clone()), ..self.clone() }
    }

    /// Returns the meter of the next opened node. Inputs must be opened after it.
    pub(super) fn meter(&self, stage: Stage) -> Meter {
        match &self.recorder {
            Some(recorder) => Meter::new(recorder, stage),
            None => Meter::tallied(&self.tally),
        }
    }

    /// Returns the meters of the next opened node: those of its window, then its own.
    pub(super) fn meters<'r>(&'r self, node: &dyn Node) -> impl Iterator<Item = Meter> + use<'r> {
        let (window, stage) = node.stages();
        window.parts().map(|(stage, _)| stage).chain(stage).map(|stage| self.meter(stage))
    }

    /// Returns the meter of the next opened node, which has no window.
    pub(super) fn first_meter(&self, node: &dyn Node) -> Meter {
        self.meters(node).next().unwrap_or_default()
    }

    /// Returns whether each node is wrapped in one that measures rows and time.
    pub(super) fn measures_nodes(&self) -> bool {
        self.recorder.as_ref().is_some_and(Recorder::draws_nodes)
    }
}
