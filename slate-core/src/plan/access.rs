use std::sync::Arc;

use slate_query::{
    interval::IntervalSet,
    path::Path,
    pattern::{Direction, KeyPattern},
    sort::Sort,
};

use super::{Combine, Conjuncts, IdPlan, IndexBounds, IndexScan, RawPlan};
use crate::catalog::IndexInfo;

/// A way to the records: what a plan's leaf will read, and which conjuncts of the filter its bounds already prove.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) path: AccessPath,
    pub(crate) direction: Direction,
    /// The filter's conjuncts that every record read this way satisfies.
    pub(crate) proven: Conjuncts,
}

#[derive(Clone, Debug)]
pub(crate) enum AccessPath {
    /// The records themselves, in the order of `_id`.
    Records { bounds: Option<IntervalSet> },
    /// The records of these `_id`s.
    Points { ids: IntervalSet },
    /// The records that an index's entries name.
    Index { index: Arc<IndexInfo>, bounds: IndexBounds, checks: Vec<(usize, IntervalSet)> },
    /// The records that any, or all, of several name.
    Merge { how: Combine, inputs: Vec<AccessPath> },
}

impl Access {
    /// Everything, in the order of `_id`.
    pub(crate) fn scan() -> Self {
        Self::of_path(AccessPath::Records { bounds: None }, Conjuncts::default())
    }

    pub(crate) fn of_path(path: AccessPath, proven: Conjuncts) -> Self {
        Self { path, direction: Direction::Ascending, proven }
    }

    pub(crate) fn into_leaf(self) -> RawPlan {
        match self.path {
            AccessPath::Records { bounds } => RawPlan::Scan { bounds, direction: self.direction },
            path => RawPlan::Fetch { ids: path.into_ids(self.direction) },
        }
    }
}

impl AccessPath {
    fn into_ids(self, direction: Direction) -> IdPlan {
        match self {
            // A scan is no list of ids; candidates never merge one.
            Self::Records { bounds } => IdPlan::Points(bounds.unwrap_or_default()),
            Self::Points { ids } => IdPlan::Points(ids),
            Self::Index { index, bounds, checks } => {
                IdPlan::Index(IndexScan { index, bounds, checks, direction, limit: None })
            }
            Self::Merge { how, inputs } => IdPlan::Merge {
                how,
                inputs: inputs.into_iter().map(|input| input.into_ids(Direction::Ascending)).collect(),
            },
        }
    }
}

/// How the rows of an access path are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ordered {
    /// By how many of the sort's leading fields.
    pub(crate) fields: usize,
    /// Whether rows equal in all of them come in the order of `_id`.
    pub(crate) ties_by_id: bool,
}

impl AccessPath {
    /// Whether it names one record at most: that of one `_id`, or of one entry of a unique index.
    pub(crate) fn is_of_one_record(&self) -> bool {
        match self {
            Self::Points { ids } => ids.len() == 1,
            // Where values were cut, a range may be wider than one entry.
            Self::Index { index, bounds, .. } => {
                index.unique
                    && !index.truncated
                    && bounds.are_points(index.pattern.fields().len())
                    && bounds.ranges().len() == 1
            }
            Self::Records { .. } | Self::Merge { .. } => false,
        }
    }

    /// How far rows read in `direction` come ordered by `sort`.
    pub(crate) fn ordered_by(&self, sort: &Sort, direction: Direction) -> Ordered {
        match self {
            Self::Records { .. } => ordered_by_id(sort, direction),
            Self::Points { .. } | Self::Merge { .. } => ordered_by_id(sort, Direction::Ascending),
            Self::Index { index, bounds, .. } => ordered_by_index(index, bounds, sort, direction),
        }
    }
}

/// How far the rows of a plan's leaf come ordered by `sort`.
pub(crate) fn leaf_order(leaf: &RawPlan, sort: &Sort) -> Ordered {
    match leaf {
        RawPlan::Scan { direction, .. } => ordered_by_id(sort, *direction),
        RawPlan::Fetch { ids: IdPlan::Index(scan) } => {
            ordered_by_index(&scan.index, &scan.bounds, sort, scan.direction)
        }
        RawPlan::Fetch { ids: IdPlan::Points(_) | IdPlan::Merge { .. } } => ordered_by_id(sort, Direction::Ascending),
        RawPlan::Filter { .. } | RawPlan::Sort { .. } | RawPlan::Slice { .. } => {
            Ordered { fields: 0, ties_by_id: false }
        }
    }
}

/// Whether the rows of a plan's leaf come in the order of `_id`.
pub(crate) fn is_leaf_in_id_order(leaf: &RawPlan) -> bool {
    match leaf {
        RawPlan::Scan { direction, .. } => *direction == Direction::Ascending,
        RawPlan::Fetch { ids: IdPlan::Points(_) | IdPlan::Merge { .. } } => true,
        // Entries of one value lie in the order of the records' keys.
        RawPlan::Fetch { ids: IdPlan::Index(IndexScan { index, bounds, direction, .. }) } => {
            *direction == Direction::Ascending
                && !index.truncated
                && (0..index.pattern.fields().len()).all(|field| bounds.is_point(field))
        }
        RawPlan::Filter { .. } | RawPlan::Sort { .. } | RawPlan::Slice { .. } => false,
    }
}

fn ordered_by_id(sort: &Sort, direction: Direction) -> Ordered {
    match sort.fields().first() {
        // `_id` decides alone: there are no ties. What follows it in the sort orders nothing, but a row may have no key
        // there (parallel arrays), which is an error whatever the plan: such a sort is kept, over groups of one row.
        Some((path, wanted)) if path.as_str() == "_id" && *wanted == direction => {
            Ordered { fields: 1, ties_by_id: true }
        }
        _ => Ordered { fields: 0, ties_by_id: false },
    }
}

/// An index gives an order only where its entries hold their values whole; with arrays on its paths, only where every
/// entry is read: the first entry of a record is then its least, which is what a sort goes by. Where a path spells a
/// position in an array, an index holds more keys of a record than a sort sees, and a sparse index leaves out an element
/// that lacks every field, which sorts as null: the least of its keys may then not be the sort's.
fn ordered_by_index(index: &IndexInfo, bounds: &IndexBounds, sort: &Sort, direction: Direction) -> Ordered {
    let fields = index.pattern.fields();
    // On a path that spells an array's position an index holds more than a sort goes by, and a sparse one less.
    let other_keys = || index.sparse || fields.iter().any(|(path, _)| path.has_position());
    if index.truncated || (index.is_multikey() && (bounds.used() > 0 || other_keys())) {
        return Ordered { fields: 0, ties_by_id: false };
    }
    let (mut at, mut matched) = (0, 0);
    for (path, wanted) in sort.fields() {
        if is_constant(&index.pattern, bounds, path) {
            matched += 1;
            continue;
        }
        while fields.get(at).is_some_and(|(held, _)| held != path) && bounds.is_point(at) {
            at += 1;
        }
        match fields.get(at) {
            Some((held, held_direction)) if held == path && *wanted == along(*held_direction, direction) => {
                at += 1;
                matched += 1;
            }
            _ => break,
        }
    }
    let rest_is_constant = (at..fields.len()).all(|field| bounds.is_point(field));
    let ties_by_id = direction == Direction::Ascending && !index.is_multikey() && rest_is_constant;
    Ordered { fields: matched, ties_by_id }
}

fn is_constant(pattern: &KeyPattern, bounds: &IndexBounds, path: &Path) -> bool {
    pattern.fields().iter().enumerate().any(|(field, (held, _))| held == path && bounds.is_point(field))
}

/// A field's own direction, seen along a walk's.
fn along(field: Direction, walk: Direction) -> Direction {
    match walk {
        Direction::Ascending => field,
        Direction::Descending => field.reversed(),
    }
}
