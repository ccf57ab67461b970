//! Opens a plan: its output nodes and its records here, the ids below them in `ids`.

use slate_query::{
    filter::{Filter, Ties},
    projection::Projection,
    raw::{Doc, Kind, Value, Writer},
};
use slate_store::View;

use super::{
    Resources,
    covered::CoveredRows,
    distinct::DistinctRows,
    distinct_keys::DistinctKeyRows,
    fetch::FetchRows,
    keys::count_keys,
    measured::MeasuredRows,
    meter::Meter,
    pipeline,
    rows::{BoxedRecords, BoxedRows, FilterRows, NoRows, Rows, ScanRows, SliceRows},
    sort::SortRows,
};
use crate::{
    Error, Result,
    catalog::CollectionInfo,
    plan::{Plan, RawPlan, Window},
};

/// Opens the rows of a plan. A count returns one row `{n}`; distinct returns one row `{v}` per value.
pub(crate) fn open<'v, V: View + 'v>(
    plan: Plan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<BoxedRows<'v>> {
    let resources = resources.of_plan(&plan, 0)?;
    open_shared(plan, view, collection, &resources)
}

/// Like [`open`], with resources whose memory is already divided among the nodes.
pub(super) fn open_shared<'v, V: View + 'v>(
    plan: Plan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<BoxedRows<'v>> {
    // Checks the interrupt at least once; nodes check only after a number of rows.
    resources.interrupt.check()?;
    let ended = resources.interrupt.ending(view);
    let view = ended.as_ref().unwrap_or(view);
    let raw = |input: RawPlan| open_records(input, view, collection, resources);
    Ok(match plan {
        Plan::Whole { input } => raw(input)?,
        Plan::Project { input, projection, filter, .. } => {
            Box::new(ProjectRows { input: raw(input)?, projection, filter, row: None })
        }
        Plan::Count { input } => Box::new(CountedRows::new(count(raw(input)?)?)),
        Plan::Distinct { input, path, values } => {
            sliced(DistinctRows::of_records(raw(input)?, &path, &values, resources)?, values.window)
        }
        Plan::Covered { scan, fields, window, .. } => sliced(CoveredRows::open(view, scan, fields, resources), window),
        Plan::CountKeys { keys, window } => {
            let counted = count_keys(view, collection, keys, resources)?;
            Box::new(CountedRows::new(window.count(counted)))
        }
        Plan::Pipeline { input, nodes } => pipeline::open(*input, nodes, view, collection, resources)?,
        Plan::DistinctKeys { scan, values } if values.are_sorted_by(&scan) => {
            sliced(DistinctKeyRows::open(view, scan, resources), values.window)
        }
        Plan::DistinctEntries { scan, field, path, values } => {
            let rows = DistinctRows::of_entries(view, collection, scan, (field, &path), &values, resources)?;
            sliced(rows, values.window)
        }
        Plan::DistinctKeys { scan, values } => {
            sliced(DistinctRows::of_keys(view, scan, &values, resources)?, values.window)
        }
    })
}

/// Opens the rows of a plan of the raw tier.
pub(super) fn open_records<'v, V: View + 'v>(
    plan: RawPlan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<BoxedRecords<'v>> {
    // A node is numbered before its input.
    let mut meters = resources.meters(&plan);
    if resources.measures_nodes() {
        let measured =
            MeasuredRows::open(meters.collect(), |meter| open_node(plan, view, collection, resources, meter))?;
        return Ok(Box::new(measured));
    }
    let meter = meters.next().unwrap_or_default();
    open_node(plan, view, collection, resources, &meter)
}

/// Opens a node, which counts in `meter`. Its input gets meters of its own.
fn open_node<'v, V: View + 'v>(
    plan: RawPlan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
    meter: &Meter,
) -> Result<BoxedRecords<'v>> {
    let scan =
        |bounds: Option<&_>, direction| ScanRows::open(view, collection, bounds, direction, resources, meter.same());
    let open = |input: Box<RawPlan>| open_records(*input, view, collection, resources);
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

/// Adds skip and limit, if there are any.
fn sliced<'v>(rows: impl Rows + Send + 'v, window: Window) -> BoxedRows<'v> {
    if window.is_all() { Box::new(rows) } else { Box::new(SliceRows::new(rows, window)) }
}

fn count(mut input: BoxedRecords<'_>) -> Result<u64> {
    let mut counted = 0;
    while input.advance()? {
        counted += 1;
    }
    Ok(counted)
}

/// Projected documents, built in one reused buffer.
struct ProjectRows<'v> {
    input: BoxedRecords<'v>,
    projection: Projection,
    /// The whole filter, which determines the array position of `$`.
    filter: Filter,
    row: Option<Vec<u8>>,
}

impl Rows for ProjectRows<'_> {
    fn park(&mut self) {
        self.input.park();
    }

    fn advance(&mut self) -> Result<bool> {
        let mut buffer = self.row.take().unwrap_or_default();
        if !self.input.advance()? {
            return Ok(false);
        }
        let Some(document) = self.input.current() else { return Ok(false) };
        let position = if self.projection.needs_position() {
            self.filter.positional(document, Ties::Last).flatten()
        } else {
            None
        };
        self.projection.apply(document, position, &mut buffer).map_err(Error::from)?;
        self.row = Some(buffer);
        Ok(true)
    }

    fn current(&self) -> Option<Doc<'_>> {
        self.row.as_deref().map(Doc::new)
    }
}

/// A single row `{n}`.
struct CountedRows {
    row: Vec<u8>,
    moves: u8,
}

impl CountedRows {
    fn new(counted: u64) -> Self {
        let counted = i64::try_from(counted).unwrap_or(i64::MAX).to_le_bytes();
        let mut writer = Writer::new();
        writer.append(b"n", Value::new(Kind::Int64, &counted));
        Self { row: writer.finish(), moves: 0 }
    }
}

impl Rows for CountedRows {
    fn advance(&mut self) -> Result<bool> {
        self.moves = self.moves.saturating_add(1);
        Ok(self.moves == 1)
    }

    fn current(&self) -> Option<Doc<'_>> {
        (self.moves == 1).then(|| Doc::new(&self.row))
    }
}
