use std::time::Instant;

use slate_store::View;

use super::{
    Resources, Rows,
    measured::window_meters,
    meter::{Meter, Recorder},
    output::open_shared,
    resources::holders,
};
use crate::{
    Result,
    catalog::CollectionInfo,
    plan::{Analysis, Plan, Window},
};

/// Runs a plan to its end, and tells what each of its nodes did.
pub(crate) fn analyze<'v, V: View + 'v>(
    plan: Plan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<Analysis> {
    let recorder = Recorder::default();
    let resources = resources.shared_by(holders(&plan)).recorded_by(&recorder);
    let mut meters = meters(&plan, &resources);
    let start = Instant::now();
    let mut output = open_shared(plan, view, collection, &resources)?;
    let mut rows = 0;
    while output.advance()? {
        rows += 1;
    }
    let time = start.elapsed();
    for meter in &mut meters {
        (meter.counted.rows, meter.counted.time) = (rows, time);
    }
    if let Some(meter) = meters.last_mut() {
        meter.spilled(output.spilled());
    }
    drop((output, meters));
    Ok(Analysis { rows, time, nodes: recorder.into_measures() })
}

/// The counts of the nodes of the projection tier, and of a slice that belongs to them.
fn meters(plan: &Plan, resources: &Resources) -> Vec<Meter> {
    let (window, stage) = match plan {
        Plan::Whole { .. } => return Vec::new(),
        Plan::Project { .. } => (Window::default(), "PROJECTION"),
        Plan::Covered { window, .. } => (*window, "PROJECTION_COVERED"),
        Plan::Count { .. } => (Window::default(), "COUNT"),
        Plan::CountKeys { window, .. } => (*window, "COUNT_SCAN"),
        Plan::Distinct { values, .. } => (values.window, "DISTINCT"),
        Plan::DistinctKeys { values, .. } => (values.window, "DISTINCT_SCAN"),
    };
    let mut meters = window_meters(window, resources);
    meters.push(resources.meter(stage));
    meters
}
