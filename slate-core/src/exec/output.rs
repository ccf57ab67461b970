use slate_query::{
    filter::Filter,
    pattern::Direction,
    projection::Projection,
    raw::{Doc, OwnedValue, Writer},
};
use slate_store::View;

use super::{
    RawRows,
    covered::CoveredRows,
    distinct::distinct,
    keys::{count_keys, distinct_keys},
};
use crate::{
    Error, Result,
    catalog::CollectionInfo,
    interrupt::Interrupt,
    plan::{Plan, RawPlan, Values},
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
    interrupt: &Interrupt,
) -> Result<Output<V>> {
    let raw = |input: RawPlan| RawRows::open(input, view, collection, interrupt);
    Ok(match plan {
        Plan::Whole { input } => Output::Whole(raw(input)?),
        Plan::Project { input, projection, filter, .. } => {
            Output::Project(Box::new(ProjectRows { input: raw(input)?, projection, filter, row: None }))
        }
        Plan::Count { input } => Output::Values(ValueRows::counted(count(raw(input)?)?)),
        Plan::Distinct { input, path, values } => {
            Output::Values(ValueRows::new("v", chosen(distinct(raw(input)?, &path)?, values)))
        }
        Plan::Covered { scan, fields, window, .. } => {
            Output::Covered(Box::new(CoveredRows::open(view, &scan, fields, window, interrupt)))
        }
        Plan::CountKeys { keys, window } => {
            let counted = window.count(count_keys(view, collection, &keys, interrupt)?);
            Output::Values(ValueRows::counted(counted))
        }
        Plan::DistinctKeys { scan, values } => {
            Output::Values(ValueRows::new("v", chosen(distinct_keys(view, &scan, interrupt)?, values)))
        }
    })
}

/// Different values, given in ascending order, as they are wanted.
fn chosen(mut found: Vec<OwnedValue>, values: Values) -> Vec<OwnedValue> {
    if values.direction == Direction::Descending {
        found.reverse();
    }
    let place = |rows: u64| usize::try_from(rows).unwrap_or(usize::MAX);
    let limit = values.window.limit.map_or(usize::MAX, place);
    found.into_iter().skip(place(values.window.skip)).take(limit).collect()
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
    Values(ValueRows),
}

impl<V: View> Rows for Output<V> {
    #[inline]
    fn advance(&mut self) -> Result<bool> {
        match self {
            Self::Whole(rows) => rows.advance(),
            Self::Project(rows) => rows.advance(),
            Self::Covered(rows) => rows.advance(),
            Self::Values(rows) => Ok(rows.advance()),
        }
    }

    #[inline]
    fn current(&self) -> Option<&[u8]> {
        match self {
            Self::Whole(rows) => rows.current().map(|record| record.document),
            Self::Project(rows) => rows.row.as_deref(),
            Self::Covered(rows) => rows.current(),
            Self::Values(rows) => rows.current.as_deref(),
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
        let Some(record) = self.input.current() else { return Ok(false) };
        let document = Doc::new(record.document);
        let position = if self.projection.needs_position() { self.filter.positional(document).flatten() } else { None };
        self.projection.apply(document, position, &mut buffer).map_err(Error::from)?;
        self.row = Some(buffer);
        Ok(true)
    }
}

/// Computed values, each in a document of one field.
pub(crate) struct ValueRows {
    name: &'static str,
    values: std::vec::IntoIter<OwnedValue>,
    current: Option<Vec<u8>>,
}

impl ValueRows {
    fn new(name: &'static str, values: Vec<OwnedValue>) -> Self {
        Self { name, values: values.into_iter(), current: None }
    }

    fn counted(counted: u64) -> Self {
        Self::new("n", vec![bson::Bson::Int64(i64::try_from(counted).unwrap_or(i64::MAX)).into()])
    }

    fn advance(&mut self) -> bool {
        self.current = self.values.next().map(|value| {
            let mut writer = Writer::new();
            writer.append(self.name.as_bytes(), value.as_value());
            writer.finish()
        });
        self.current.is_some()
    }
}
