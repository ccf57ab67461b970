use slate_query::{
    filter::Filter,
    projection::Projection,
    raw::{Doc, OwnedValue, Writer},
};
use slate_store::View;

use super::{
    RawRows, Resources, covered::CoveredRows, distinct::DistinctRows, distinct_keys::DistinctKeyRows, keys::count_keys,
    resources::holders,
};
use crate::{
    Error, Result,
    catalog::CollectionInfo,
    plan::{Plan, RawPlan},
    spill::Spilled,
};

/// Rows as the caller sees them, with no backend in their type.
pub(crate) trait Rows {
    /// Moves to the next row; `false` after the last.
    fn advance(&mut self) -> Result<bool>;

    /// The row last moved to, a document's bytes; `None` where there is none.
    fn current(&self) -> Option<&[u8]>;
}

/// Opens a plan's rows. Those of [`Plan::Count`] are one document `{n}`, those of [`Plan::Distinct`] one `{v}` a value.
pub(crate) fn open<'v, V: View + 'v>(
    plan: Plan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<Output<V>> {
    let resources = resources.shared_by(holders(&plan));
    open_shared(plan, view, collection, &resources)
}

/// Opens a plan's rows, where the memory is what each node that holds rows has.
pub(super) fn open_shared<'v, V: View + 'v>(
    plan: Plan,
    view: &V,
    collection: &CollectionInfo,
    resources: &Resources,
) -> Result<Output<V>> {
    // Later looks come every so many rows, of which there may be few.
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
        Plan::DistinctKeys { scan, values } => {
            if values.are_sorted_by(&scan) {
                Output::DistinctKeys(Box::new(DistinctKeyRows::open(view, scan, values.window, resources)))
            } else {
                Output::Distinct(Box::new(DistinctRows::of_keys(view, scan, values, resources)?))
            }
        }
    })
}

/// How many records there are.
fn count<V: View>(mut input: RawRows<V>) -> Result<u64> {
    let mut counted = 0;
    while input.advance()? {
        counted += 1;
    }
    Ok(counted)
}

/// The projection tier.
pub(crate) enum Output<V: View> {
    Whole(RawRows<V>),
    Project(Box<ProjectRows<V>>),
    Covered(Box<CoveredRows<V>>),
    Counted(CountedRows),
    Distinct(Box<DistinctRows>),
    DistinctKeys(Box<DistinctKeyRows<V>>),
}

impl<V: View> Output<V> {
    /// What the topmost node wrote to temporary files.
    pub(super) fn spilled(&self) -> Spilled {
        match self {
            Self::Distinct(rows) => rows.spilled(),
            Self::Whole(_) | Self::Project(_) | Self::Covered(_) | Self::Counted(_) | Self::DistinctKeys(_) => {
                Spilled::default()
            }
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
        }
    }

    #[inline]
    fn current(&self) -> Option<&[u8]> {
        match self {
            Self::Whole(rows) => rows.stored().map(|stored| Doc::stored(stored).bytes()),
            Self::Project(rows) => rows.row.as_deref(),
            Self::Covered(rows) => rows.current(),
            Self::Counted(rows) => rows.current(),
            Self::Distinct(rows) => rows.current(),
            Self::DistinctKeys(rows) => rows.current(),
        }
    }
}

/// Rows as a projection leaves them, each built in one buffer.
pub(crate) struct ProjectRows<V: View> {
    input: RawRows<V>,
    projection: Projection,
    /// The whole filter: the position that `$` stands for comes from it, never from bounds.
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
        let position = if self.projection.needs_position() { self.filter.positional(document).flatten() } else { None };
        self.projection.apply(document, position, &mut buffer).map_err(Error::from)?;
        self.row = Some(buffer);
        Ok(true)
    }
}

/// One row, `{n}`.
pub(crate) struct CountedRows {
    row: Vec<u8>,
    position: Position,
}

impl CountedRows {
    fn new(counted: u64) -> Self {
        let counted = OwnedValue::from(bson::Bson::Int64(i64::try_from(counted).unwrap_or(i64::MAX)));
        let mut writer = Writer::new();
        writer.append(b"n", counted.as_value());
        Self { row: writer.finish(), position: Position::default() }
    }

    fn advance(&mut self) -> bool {
        self.position.advance()
    }

    fn current(&self) -> Option<&[u8]> {
        self.position.is_on().then_some(self.row.as_slice())
    }
}

/// Where one stands among rows of which there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Position {
    #[default]
    Before,
    On,
    After,
}

impl Position {
    /// Moves to the next row; `false` after the last.
    fn advance(&mut self) -> bool {
        *self = if *self == Self::Before { Self::On } else { Self::After };
        self.is_on()
    }

    fn is_on(self) -> bool {
        self == Self::On
    }
}
