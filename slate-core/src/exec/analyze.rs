use std::time::Instant;

use slate_store::View;

use super::{
    Resources, Rows,
    meter::{Meter, Recorder},
    open::open_shared,
};
use crate::{
    Error, Result,
    catalog::CollectionInfo,
    plan::{Analysis, Plan},
};

/// Executes a plan to its end. Returns the measures of the whole execution and of each node.
pub(crate) fn analyze<'v, V: View + 'v>(
    plan: Plan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<Analysis> {
    let recorder = Recorder::default();
    let resources = resources.of_plan(&plan, 0)?.recorded_by(&recorder);
    let mut meters: Vec<Meter> = resources.meters(&plan).collect();
    let (start, before) = (Instant::now(), (view.round_trips(), view.requests()));
    let (executed, storage_bytes) = view.with_bytes_read(|| {
        let mut output = open_shared(plan, view, collection, &resources)?;
        let mut rows = 0;
        while output.advance()? {
            rows += 1;
        }
        Ok::<_, Error>((output, rows))
    });
    let (output, rows) = executed?;
    let time = start.elapsed();
    for meter in &mut meters {
        (meter.counted.rows, meter.counted.time) = (rows, time);
    }
    if let Some(meter) = meters.last_mut() {
        meter.spilled(output.spilled());
    }
    drop((output, meters));
    let since = |(now, before): (u64, u64)| now.saturating_sub(before);
    let (round_trips, requests) =
        (view.round_trips().zip(before.0).map(since), view.requests().zip(before.1).map(since));
    Ok(Analysis { rows, time, storage_bytes, round_trips, requests, nodes: recorder.into_measures() })
}
