use std::sync::Arc;

use slate_query::{interval::IntervalSet, path::Path, pattern::Direction, sort::Sort};

use super::{Checks, Combine, Conjuncts, IdPlan, IndexBounds, IndexScan, RawPlan};
use crate::catalog::IndexInfo;

/// An access path and its direction: the leaf of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) path: AccessPath,
    pub(crate) direction: Direction,
    /// The conjuncts for which its bounds are exact: every record read this way satisfies them.
    pub(crate) exact_for: Conjuncts,
}

#[derive(Clone, Debug)]
pub(crate) enum AccessPath {
    /// The records in the order of `_id`, within bounds on it.
    Records { bounds: Option<IntervalSet> },
    /// The records of these `_id`s.
    Points { ids: IntervalSet },
    /// The records of an index's entries. See [`IndexScan::checks`] for `checks`.
    Index { index: Arc<IndexInfo>, bounds: IndexBounds, checks: Checks },
    /// The records that any or all of several paths return.
    Merge { how: Combine, inputs: Vec<AccessPath> },
}

impl Access {
    /// Creates the path to all records, in the order of `_id`.
    pub(crate) fn full_scan() -> Self {
        Self::of_path(AccessPath::Records { bounds: None }, Conjuncts::default())
    }

    pub(crate) fn is_full_scan(&self) -> bool {
        matches!(self.path, AccessPath::Records { bounds: None }) && self.direction == Direction::Ascending
    }

    pub(crate) fn of_path(path: AccessPath, exact_for: Conjuncts) -> Self {
        Self { path, direction: Direction::Ascending, exact_for }
    }
}

impl AccessPath {
    pub(crate) fn into_leaf(self, direction: Direction) -> RawPlan {
        match self {
            Self::Records { bounds } => RawPlan::Scan { bounds, direction },
            path => RawPlan::Fetch { ids: path.into_ids(direction) },
        }
    }

    fn into_ids(self, direction: Direction) -> IdPlan {
        match self {
            // Merges never contain a scan.
            Self::Records { bounds } => IdPlan::Points(bounds.unwrap_or_default()),
            Self::Points { ids } => IdPlan::Points(ids),
            Self::Index { index, bounds, checks } => {
                IdPlan::Index(IndexScan { index, bounds, checks, direction, limit: None, firsts: 0 })
            }
            Self::Merge { how, inputs } => IdPlan::Merge {
                how,
                inputs: inputs.into_iter().map(|input| input.into_ids(Direction::Ascending)).collect(),
            },
        }
    }
}

/// The extent to which the rows of an access path are in the order of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowOrder {
    /// Number of leading sort fields by which the rows are ordered.
    pub(crate) fields: usize,
    /// Whether rows that are equal in all of these fields are in the order of `_id`.
    pub(crate) ties_by_id: bool,
}

impl AccessPath {
    /// Returns whether the path reads at most one record: one `_id`, or one entry of a unique index.
    pub(crate) fn is_of_one_record(&self) -> bool {
        match self {
            Self::Points { ids } => ids.len() == 1,
            // With truncated values, a range may contain several entries.
            Self::Index { index, bounds, .. } => {
                index.unique
                    && !index.truncated
                    && bounds.are_points(index.pattern.fields().len())
                    && bounds.ranges().len() == 1
            }
            Self::Records { .. } | Self::Merge { .. } => false,
        }
    }

    /// Returns how the rows read in `direction` are ordered with respect to `sort`.
    pub(crate) fn ordered_by(&self, sort: &Sort, direction: Direction) -> RowOrder {
        match self {
            Self::Records { .. } => ordered_by_id(sort, direction),
            Self::Points { .. } | Self::Merge { .. } => ordered_by_id(sort, Direction::Ascending),
            Self::Index { index, bounds, .. } => ordered_by_index(index, bounds, sort, direction),
        }
    }
}

/// Returns whether the rows of a plan's leaf come in the order of `_id`.
pub(crate) fn is_leaf_in_id_order(leaf: &RawPlan) -> bool {
    match leaf {
        RawPlan::Scan { direction, .. } => *direction == Direction::Ascending,
        RawPlan::Fetch { ids: IdPlan::Points(_) | IdPlan::Merge { .. } } => true,
        // Entries with equal values are ordered by their record keys.
        RawPlan::Fetch { ids: IdPlan::Index(IndexScan { index, bounds, direction, .. }) } => {
            *direction == Direction::Ascending
                && !index.truncated
                && (0..index.pattern.fields().len()).all(|field| bounds.is_point(field))
        }
        RawPlan::Eof { .. } | RawPlan::Filter { .. } | RawPlan::Sort { .. } | RawPlan::Slice { .. } => false,
    }
}

fn ordered_by_id(sort: &Sort, direction: Direction) -> RowOrder {
    match sort.fields().first() {
        // No two rows have the same `_id`, so later sort fields do not matter. The sort remains, over groups of one
        // row, because a row without a sort key (parallel arrays) must fail in every plan.
        Some((path, wanted)) if path.as_str() == "_id" && *wanted == direction && sort.collation().is_none() => {
            RowOrder { fields: 1, ties_by_id: true }
        }
        _ => RowOrder { fields: 0, ties_by_id: false },
    }
}

/// Returns how the entries of an index are ordered with respect to `sort`.
///
/// An index with truncated values, or with another collation than the sort, has no usable order. A multikey index is ordered
/// by a field without arrays if a record has one entry within the bounds. Otherwise it is ordered only if every entry is
/// read: the first entry of a record then has its least key, by which the sort orders it. The least key differs from the
/// sort's key if a path contains an array position (the index has keys that the sort does not use) or if the index is
/// sparse (it omits elements without any of its fields, which sort as null).
pub(super) fn ordered_by_index(index: &IndexInfo, bounds: &IndexBounds, sort: &Sort, direction: Direction) -> RowOrder {
    let fields = index.pattern.fields();
    let has_other_keys = || index.sparse || fields.iter().any(|(path, _)| path.has_position());
    let is_unordered = index.truncated || index.collation.as_ref() != sort.collation();
    let is_once = bounds.find_once(index);
    if is_unordered || (!is_once && (bounds.are_limited() || has_other_keys())) {
        return RowOrder { fields: 0, ties_by_id: false };
    }
    // The sort orders a record by the least of its values, which need not be that of the entry.
    let is_sorted_at = |field: usize| !is_once || !index.is_multikey_at(field);
    let (mut at, mut matched) = (0, 0);
    for (path, wanted) in sort.fields() {
        if is_constant(index, bounds, path) {
            matched += 1;
            continue;
        }
        while fields.get(at).is_some_and(|(held, _)| held != path) && bounds.is_point(at) {
            at += 1;
        }
        match fields.get(at) {
            Some((held, held_direction))
                if held == path && is_sorted_at(at) && *wanted == along(*held_direction, direction) =>
            {
                at += 1;
                matched += 1;
            }
            // Entries with equal values are in the order of `_id`. No two rows have the same `_id`.
            None if path.as_str() == "_id" && *wanted == direction && is_once && sort.collation().is_none() => {
                matched += 1;
                break;
            }
            _ => break,
        }
    }
    let rest_is_constant = (at..fields.len()).all(|field| bounds.is_point(field));
    let ties_by_id = direction == Direction::Ascending && is_once && rest_is_constant;
    RowOrder { fields: matched, ties_by_id }
}

fn is_constant(index: &IndexInfo, bounds: &IndexBounds, path: &Path) -> bool {
    let is_held = |field: usize| bounds.is_point(field) && !index.is_multikey_at(field);
    index.pattern.fields().iter().enumerate().any(|(field, (held, _))| held == path && is_held(field))
}

/// Returns the direction of a field's values in a walk.
fn along(field: Direction, walk: Direction) -> Direction {
    match walk {
        Direction::Ascending => field,
        Direction::Descending => field.reversed(),
    }
}
