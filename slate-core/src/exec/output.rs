use slate_query::{
    filter::{Filter, Ties},
    projection::Projection,
    raw::{Doc, Kind, Value, Writer},
};
use slate_store::View;

use super::{
    RawRows, Resources, covered::CoveredRows, distinct::DistinctRows, distinct_keys::DistinctKeyRows, keys::count_keys,
    pipeline::DocumentRows,
};
use crate::{
    Error, Result,
    catalog::CollectionInfo,
    metrics::Spilled,
    plan::{Plan, RawPlan},
};

/// The rows of a result, without a backend in their type.
pub(crate) trait Rows {
    /// Moves to the next row. Returns `false` after the last.
    fn advance(&mut self) -> Result<bool>;

    /// Returns the current row. A whole record has its field table.
    fn current(&self) -> Option<Doc<'_>>;

    /// Returns the current row in its stored form as a shared buffer. `None` if it has to be copied, or if a move can read more
    /// than one record.
    #[cfg(feature = "async")]
    fn shared(&self) -> Option<std::sync::Arc<[u8]>> {
        None
    }
}

/// Opens the rows of a plan. A count returns one row `{n}`; distinct returns one row `{v}` per value.
pub(crate) fn open<'v, V: View + 'v>(
    plan: Plan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<Output<V>> {
    let resources = resources.of_plan(&plan, 0)?;
    open_shared(plan, view, collection, &resources)
}

/// Like [`open`], but `resources` are the share of a single node.
pub(super) fn open_shared<'v, V: View + 'v>(
    plan: Plan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<Output<V>> {
    // Checks the interrupt at least once; nodes check only after a number of rows.
    resources.interrupt.check()?;
    let raw = |input: RawPlan| RawRows::open(input, view, collection, resources);
    Ok(match plan {
        Plan::Whole { input } => Output::Whole(raw(input)?),
        Plan::Project { input, projection, filter, .. } => {
            Output::Project(Box::new(ProjectRows { input: raw(input)?, projection, filter, row: None }))
        }
        Plan::Count { input } => Output::Counted(CountedRows::new(count(raw(input)?)?)),
        Plan::Distinct { input, path, values } => {
            Output::Distinct(Box::new(DistinctRows::of_records(raw(input)?, &path, values, resources)?))
        }
        Plan::Covered { scan, fields, window, .. } => {
            Output::Covered(Box::new(CoveredRows::open(view, scan, fields, window, resources)))
        }
        Plan::CountKeys { keys, window } => {
            let counted = count_keys(view, collection, keys, resources)?;
            Output::Counted(CountedRows::new(window.count(counted)))
        }
        Plan::Pipeline { input, nodes } => {
            Output::Pipeline(DocumentRows::open(*input, nodes, view, collection, resources)?)
        }
        Plan::DistinctKeys { scan, values } => {
            if values.are_sorted_by(&scan) {
                Output::DistinctKeys(Box::new(DistinctKeyRows::open(view, scan, values.window, resources)))
            } else {
                Output::Distinct(Box::new(DistinctRows::of_keys(view, scan, values, resources)?))
            }
        }
    })
}

/// Counts records.
fn count<V: View>(mut input: RawRows<V>) -> Result<u64> {
    let mut counted = 0;
    while input.advance()? {
        counted += 1;
    }
    Ok(counted)
}

/// The output tier.
pub(crate) enum Output<V: View> {
    Whole(RawRows<V>),
    Project(Box<ProjectRows<V>>),
    Covered(Box<CoveredRows<V>>),
    Counted(CountedRows),
    Distinct(Box<DistinctRows>),
    DistinctKeys(Box<DistinctKeyRows<V>>),
    Pipeline(DocumentRows<V>),
}

impl<V: View> Output<V> {
    /// Moves to the next row and returns how many consecutive rows it stands for: rows that are the same document are returned
    /// once where that is less work. 0 after the last row.
    #[inline]
    pub(super) fn advance_run(&mut self) -> Result<u64> {
        match self {
            Self::Covered(rows) => rows.advance_run(),
            rows => rows.advance().map(u64::from),
        }
    }

    /// Returns the amount that the root node has written to temporary files.
    pub(super) fn spilled(&self) -> Spilled {
        match self {
            Self::Distinct(rows) => rows.spilled(),
            Self::Whole(_)
            | Self::Project(_)
            | Self::Covered(_)
            | Self::Counted(_)
            | Self::DistinctKeys(_)
            | Self::Pipeline(_) => Spilled::default(),
        }
    }
}

impl<V: View> Rows for Output<V> {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        match self {
            Self::Whole(rows) => rows.advance(),
            Self::Project(rows) => rows.advance(),
            Self::Covered(rows) => rows.advance(),
            Self::Counted(rows) => Ok(rows.advance()),
            Self::Distinct(rows) => rows.advance(),
            Self::DistinctKeys(rows) => rows.advance(),
            Self::Pipeline(rows) => rows.advance(),
        }
    }

    #[inline]
    fn current(&self) -> Option<Doc<'_>> {
        let built = match self {
            Self::Whole(rows) => return rows.stored().map(Doc::stored),
            Self::Pipeline(rows) => return rows.current(),
            Self::Project(rows) => rows.row.as_deref(),
            Self::Covered(rows) => rows.current(),
            Self::Counted(rows) => rows.current(),
            Self::Distinct(rows) => rows.current(),
            Self::DistinctKeys(rows) => rows.current(),
        };
        built.map(Doc::new)
    }

    #[cfg(feature = "async")]
    fn shared(&self) -> Option<std::sync::Arc<[u8]>> {
        match self {
            Self::Whole(rows) if rows.reads_one_record() => rows.shared(),
            _ => None,
        }
    }
}

/// Projected documents, built in one reused buffer.
pub(crate) struct ProjectRows<V: View> {
    input: RawRows<V>,
    projection: Projection,
    /// The whole filter, which determines the array position of `$`.
    filter: Filter,
    row: Option<Vec<u8>>,
}

impl<V: View> ProjectRows<V> {
    fn advance(&mut self) -> Result<bool> {
        let mut buffer = self.row.take().unwrap_or_default();
        if !self.input.advance()? {
            return Ok(false);
        }
        let Some(document) = self.input.stored().map(Doc::stored) else { return Ok(false) };
        let position = if self.projection.needs_position() {
            self.filter.positional(document, Ties::Last).flatten()
        } else {
            None
        };
        self.projection.apply(document, position, &mut buffer).map_err(Error::from)?;
        self.row = Some(buffer);
        Ok(true)
    }
}

/// A single row `{n}`.
pub(crate) struct CountedRows {
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

    fn advance(&mut self) -> bool {
        self.moves = self.moves.saturating_add(1);
        self.moves == 1
    }

    fn current(&self) -> Option<&[u8]> {
        (self.moves == 1).then_some(self.row.as_slice())
    }
}
