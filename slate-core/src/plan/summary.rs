use std::sync::Arc;

use super::{CountedKeys, IdPlan, IndexScan, Plan, RawPlan};
use crate::metrics::PlanSummary;

impl Plan {
    /// Returns how the plan reads its records, as MongoDB's `planSummary`. It costs next to nothing, because every query has one.
    pub(crate) fn summary(&self) -> PlanSummary {
        match self {
            Self::Whole { input }
            | Self::Project { input, .. }
            | Self::Count { input }
            | Self::Distinct { input, .. } => input.summary(),
            Self::Covered { scan, .. } => of_index("IXSCAN", scan),
            Self::CountKeys { keys: CountedKeys::Records { .. }, .. } => PlanSummary::Stage("COUNT_SCAN { _id: 1 }"),
            Self::CountKeys { keys: CountedKeys::Entries(scan), .. } => of_index("COUNT_SCAN", scan),
            Self::CountKeys { keys: CountedKeys::Ids(ids), .. } => ids.summary(),
            Self::DistinctKeys { scan, .. } | Self::DistinctEntries { scan, .. } => of_index("DISTINCT_SCAN", scan),
            Self::Pipeline { input, .. } => input.summary(),
        }
    }
}

impl RawPlan {
    fn summary(&self) -> PlanSummary {
        match self.leaf() {
            Self::Scan { bounds: None, .. } => PlanSummary::Stage("COLLSCAN"),
            Self::Scan { bounds: Some(_), .. } => PlanSummary::Stage("CLUSTERED_IXSCAN"),
            Self::Fetch { ids } => ids.summary(),
            // The others are no leaves.
            Self::Eof { .. } | Self::Filter { .. } | Self::Sort { .. } | Self::Slice { .. } => {
                PlanSummary::Stage("EOF")
            }
        }
    }
}

impl IdPlan {
    fn summary(&self) -> PlanSummary {
        match self {
            Self::Points(points) if points.as_point().is_some() => PlanSummary::LOOKUP,
            Self::Points(_) => PlanSummary::Stage("IXSCAN { _id: 1 }"),
            Self::Index(scan) => of_index("IXSCAN", scan),
            Self::Merge { inputs, .. } => PlanSummary::Several(inputs.iter().map(Self::summary).collect()),
        }
    }
}

fn of_index(stage: &'static str, scan: &IndexScan) -> PlanSummary {
    PlanSummary::Index(stage, Arc::clone(&scan.index) as _)
}
