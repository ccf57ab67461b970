//! The raw tier: opens its nodes.

use slate_store::View;

use super::{
    Resources,
    fetch::FetchRows,
    filter::FilterRows,
    measured::MeasuredRows,
    meter::Meter,
    rows::{BoxedRecords, NoRows},
    scan::ScanRows,
    slice::SliceRows,
    sort::SortRows,
};
use crate::{Result, catalog::CollectionInfo, plan::RawPlan};

/// Opens the records of a plan.
pub(super) fn open<'v, V: View + 'v>(
    plan: RawPlan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<BoxedRecords<'v>> {
    // A node is numbered before its input.
    let mut meters = plan.stages().map(|stage| resources.meter(stage));
    if resources.measures_nodes() {
        let measured =
            MeasuredRows::open(meters.collect(), |meter| open_node(plan, view, collection, resources, meter))?;
        return Ok(Box::new(measured));
    }
    let meter = meters.next().unwrap_or_default();
    open_node(plan, view, collection, resources, &meter)
}

/// Opens a node with this meter.
fn open_node<'v, V: View + 'v>(
    plan: RawPlan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
    meter: &Meter,
) -> Result<BoxedRecords<'v>> {
    let scan =
        |bounds: Option<&_>, direction| ScanRows::open(view, collection, bounds, direction, resources, meter.same());
    let open = |input: Box<RawPlan>| open(*input, view, collection, resources);
    Ok(match plan {
        RawPlan::Eof { .. } => Box::new(NoRows),
        RawPlan::Scan { bounds, direction } => Box::new(scan(bounds.as_ref(), direction)),
        RawPlan::Fetch { ids } => Box::new(FetchRows::open(view, collection, ids, resources, meter.same())?),
        RawPlan::Filter { input, filter } => match *input {
            // The most common input is compiled into the filter's loop, without a call per record.
            RawPlan::Scan { bounds, direction } if !resources.measures_nodes() => {
                Box::new(FilterRows::new(scan(bounds.as_ref(), direction), filter))
            }
            _ => Box::new(FilterRows::new(open(input)?, filter)),
        },
        RawPlan::Sort { input, sort, presorted, limit, kept } => {
            Box::new(SortRows::of_records(open(input)?, sort, presorted, limit, kept, resources, meter.same()))
        }
        RawPlan::Slice { input, window } => Box::new(SliceRows::new(open(input)?, window)),
    })
}
