//! Access paths: how a plan reaches records, by `_id` or by the entries of indexes; the bounds of an index, which grow field by field from
//! the conjuncts of a filter; and the order in which a path yields its rows.

use std::{borrow::Cow, sync::Arc};

use slate_query::{
    interval::{Interval, IntervalSet, Place},
    path::Path,
    pattern::Direction,
    raw::SmallBytes,
    sort::Sort,
};

use super::{Checks, Combine, IdPlan, IndexScan, RawPlan};
use crate::{
    catalog::{Held, IndexInfo},
    entry::MAX_UNIQUE_PREFIX,
    key_range::KeyRange,
};

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
    /// All records, or those within bounds on `_id`, in the order of `_id`.
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
    /// Returns the fields that an index path limits, each with its allowed values; none for other paths. The path field of a wildcard index is
    /// among them only if no other field is: a value at a path implies the path.
    pub(super) fn limits(&self) -> impl Iterator<Item = (&Path, &IntervalSet)> {
        let index = match self {
            Self::Index { index, bounds, checks } => Some((index, bounds, checks)),
            Self::Records { .. } | Self::Points { .. } | Self::Merge { .. } => None,
        };
        index.into_iter().flat_map(|(index, bounds, checks)| {
            let is_implied = index.is_part() && (bounds.used() > 1 || !checks.is_empty());
            let bound = bounds.fields().iter().enumerate().skip(usize::from(is_implied));
            let checked = checks.values.iter().map(|(field, set)| (*field, set));
            let path = |field: usize| index.pattern.fields().get(field).map(|(path, _)| path);
            bound.chain(checked).filter_map(move |(field, set)| Some((path(field)?, set)))
        })
    }

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

/// Returns whether the rows of a plan's leaf certainly come in the order of `_id`.
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
/// An index with truncated values, or with another collation than the sort, has no usable order. A multikey index is ordered by a field
/// without arrays if a record has at most one entry within the bounds. Otherwise it is ordered only if every entry is read: the first
/// entry of a record then has the key by which the sort orders the record. That fails if a path contains an array position (the index has
/// keys that the sort does not use) or if the index is sparse (it omits elements without any of its fields, which sort as null).
pub(super) fn ordered_by_index(index: &IndexInfo, bounds: &IndexBounds, sort: &Sort, direction: Direction) -> RowOrder {
    let fields = index.pattern.fields();
    let has_other_keys = || index.sparse || fields.iter().any(|(path, _)| path.has_position());
    let is_unordered = index.truncated || index.collation.as_ref() != sort.collation();
    let is_once = bounds.find_once(index);
    if is_unordered || (!is_once && (bounds.are_limited() || has_other_keys())) {
        return RowOrder { fields: 0, ties_by_id: false };
    }
    // A sort orders an array by its first element in sort order, which need not be the element of the entry.
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

/// Maximum number of ranges of bounds on several fields, one for each combination of their points. Later fields stay
/// in the filter. Several thousand seeks cost about as much as reading the entries in between.
const MAX_RANGES: usize = 4_096;

/// Builds bounds on the leading fields of an index, field by field.
#[derive(Clone, Debug)]
pub(super) struct GrowingBounds {
    fields: Vec<IntervalSet>,
    exact_for: Conjuncts,
    ranges: usize,
    end: BoundsEnd,
}

/// Whether another field can be bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BoundsEnd {
    Open,
    /// A range was bound, or another field would need too many ranges.
    Closed,
}

impl Default for GrowingBounds {
    fn default() -> Self {
        Self { fields: Vec::new(), exact_for: Conjuncts::default(), ranges: 1, end: BoundsEnd::Open }
    }
}

impl GrowingBounds {
    pub(super) fn is_open(&self) -> bool {
        self.end == BoundsEnd::Open
    }

    /// Binds the next field, unless a range was bound before or a field after the first needs more than [`MAX_RANGES`]. Then no later
    /// field is bound either.
    pub(super) fn push(&mut self, set: IntervalSet, exact_for: Conjuncts) {
        let ranges = self.ranges.saturating_mul(set.len().max(1));
        if self.end == BoundsEnd::Closed || (!self.fields.is_empty() && ranges > MAX_RANGES) {
            self.end = BoundsEnd::Closed;
            return;
        }
        self.ranges = ranges;
        if !set.is_points() {
            self.end = BoundsEnd::Closed;
        }
        self.fields.push(set);
        self.exact_for = self.exact_for.union(exact_for);
    }

    pub(super) fn with(&self, set: IntervalSet, exact_for: Conjuncts) -> Self {
        let mut grown = self.clone();
        grown.push(set, exact_for);
        grown
    }

    pub(super) fn finish(self, index: &IndexInfo) -> (IndexBounds, Conjuncts) {
        (IndexBounds::new(index, self.fields), self.exact_for)
    }
}

/// Bounds on the leading fields of an index, and the ranges of entry keys within them; or a range of keys alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexBounds {
    fields: Vec<IntervalSet>,
    /// Ascending and disjoint; empty without bounds.
    ranges: Vec<KeyRange>,
}

impl IndexBounds {
    /// Creates bounds on the leading fields, of which all but the last are points. If entries contain their values
    /// untruncated, the ranges are exact for the bounds, and the filter can be dropped.
    pub(crate) fn new(index: &IndexInfo, fields: Vec<IntervalSet>) -> Self {
        if fields.is_empty() {
            return Self::default();
        }
        let held = index.held();
        let mut ranges = Vec::with_capacity(fields.iter().map(IntervalSet::len).product());
        push_ranges(&[], &fields, index.pattern.fields(), held, &mut ranges);
        // Widened ranges may overlap.
        let ranges = if held == Held::Whole { ranges } else { merge(ranges) };
        Self { fields, ranges }
    }

    /// Creates bounds that select the entries whose keys are within a range.
    pub(crate) fn of_keys(range: KeyRange) -> Self {
        Self { fields: Vec::new(), ranges: vec![range] }
    }

    /// Returns whether the bounds are a range of keys, not intervals of fields.
    pub(crate) fn are_of_keys(&self) -> bool {
        self.fields.is_empty() && !self.ranges.is_empty()
    }

    /// Returns whether entries can be outside of the bounds.
    pub(crate) fn are_limited(&self) -> bool {
        !self.fields.is_empty() || !self.ranges.is_empty()
    }

    /// Returns how many leading fields are bound.
    pub(crate) fn used(&self) -> usize {
        self.fields.len()
    }

    /// Returns the intervals of each bound field, in ascending key bytes even if the field is descending.
    pub(crate) fn fields(&self) -> &[IntervalSet] {
        &self.fields
    }

    /// Returns the ranges of entry keys; empty if nothing is bound.
    pub(crate) fn ranges(&self) -> &[KeyRange] {
        &self.ranges
    }

    /// Returns the ranges of entry keys, ascending and disjoint: one range over all keys if nothing is bound.
    pub(crate) fn into_ranges(self) -> Vec<KeyRange> {
        if self.are_limited() { self.ranges } else { vec![KeyRange::default()] }
    }

    /// Returns whether the field is bound to one value.
    pub(crate) fn is_point(&self, field: usize) -> bool {
        self.fields.get(field).is_some_and(|set| set.as_point().is_some())
    }

    /// Returns whether a record has at most one entry within the bounds. The entries of a record differ only in fields with arrays, so at
    /// most one of them has a given value in each of these fields. Several entries may be equal in truncated values.
    pub(crate) fn find_once(&self, index: &IndexInfo) -> bool {
        let is_fixed = |field: usize| !index.is_multikey_at(field) || self.is_point(field);
        let fields = index.pattern.fields().len();
        !index.is_multikey() || (index.wildcard.is_none() && !index.truncated && (0..fields).all(is_fixed))
    }

    /// Returns whether exactly this many fields are bound, each to single values.
    pub(crate) fn are_points(&self, fields: usize) -> bool {
        self.fields.len() == fields && self.fields.iter().all(IntervalSet::is_points)
    }
}

/// Appends the ranges of entries whose first values are `before` and whose next fields are within `fields`.
fn push_ranges(
    before: &[u8],
    fields: &[IntervalSet],
    pattern: &[(Path, Direction)],
    held: Held,
    ranges: &mut Vec<KeyRange>,
) {
    let (Some((set, fields)), Some(((_, direction), pattern))) = (fields.split_first(), pattern.split_first()) else {
        return;
    };
    for interval in directed(set, *direction).iter() {
        match interval.as_point() {
            Some(point) if !fields.is_empty() => {
                push_ranges(&SmallBytes::concat(&[before, point]), fields, pattern, held, ranges);
            }
            _ => ranges.push(range(before, interval, held)),
        }
    }
}

/// Returns the range of keys that start with `before` and continue within the interval. If values may be truncated, an
/// end after the truncation is widened to all keys with the same untruncated part.
fn range(before: &[u8], interval: &Interval, held: Held) -> KeyRange {
    let low = interval.low().to_bytes(before);
    let start = if is_cut(before, interval.low(), held) { untruncated(&low).into() } else { low };
    let high = interval.high().to_bytes(before);
    // After a truncation any byte can follow, including 0xff.
    let end = if is_cut(before, interval.high(), held) { successor(untruncated(&high)) } else { Some(high) };
    KeyRange { start, end }
}

/// Returns whether a bound of an interval lies beyond the part of an entry's values that is stored.
fn is_cut(before: &[u8], place: &Place, held: Held) -> bool {
    match held {
        Held::Truncated => before.len() + place.prefix.len() >= MAX_UNIQUE_PREFIX,
        Held::Whole => false,
    }
}

fn untruncated(place: &[u8]) -> &[u8] {
    place.get(..MAX_UNIQUE_PREFIX).unwrap_or(place)
}

/// Returns the least bytes above all that start with `prefix`; `None` if `prefix` consists of 0xff.
fn successor(prefix: &[u8]) -> Option<SmallBytes> {
    let (last, before) = prefix.get(..=prefix.iter().rposition(|&byte| byte != 0xff)?)?.split_last()?;
    Some(SmallBytes::concat(&[before, &[last + 1]]))
}

/// Returns the range of entry keys that start with one value of an ascending or descending field.
pub(crate) fn component_range(value: SmallBytes, direction: Direction) -> KeyRange {
    let interval = Interval::point(value);
    match direction {
        Direction::Ascending => range(&[], &interval, Held::Whole),
        Direction::Descending => range(&[], &interval.inverted(), Held::Whole),
    }
}

/// Returns the ranges of a field's encoded values. A value is in a range exactly if it is in the set.
pub(crate) fn component_ranges(set: &IntervalSet, direction: Direction) -> Vec<KeyRange> {
    record_ranges(Some(&directed(set, direction)))
}

/// Returns the set with the key bytes of a field of this direction.
fn directed(set: &IntervalSet, direction: Direction) -> Cow<'_, IntervalSet> {
    match direction {
        Direction::Ascending => Cow::Borrowed(set),
        Direction::Descending => Cow::Owned(set.inverted()),
    }
}

/// Returns the ranges of record keys within bounds on `_id`.
pub(crate) fn record_ranges(bounds: Option<&IntervalSet>) -> Vec<KeyRange> {
    match bounds {
        None => vec![KeyRange::default()],
        Some(set) => set.iter().map(|interval| range(&[], interval, Held::Whole)).collect(),
    }
}

/// Joins overlapping ranges, which are given in ascending order.
fn merge(ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    let mut merged: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end.as_deref().is_none_or(|end| *end > *range.start) => {
                // A range without an end reaches to the last key.
                last.end = last.end.take().zip(range.end).map(|(a, b)| if *a < *b { b } else { a });
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// A set of a filter's conjuncts, by position. The set never contains conjuncts after the 64th: they stay in the filter
/// even if their bounds are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Conjuncts(u64);

impl Conjuncts {
    pub(crate) fn one(place: usize) -> Self {
        Self(u32::try_from(place).ok().and_then(|place| 1_u64.checked_shl(place)).unwrap_or_default())
    }

    #[must_use]
    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn contains(self, place: usize) -> bool {
        self.0 & Self::one(place).0 != 0
    }

    /// Returns whether the set has conjuncts, and all of them are in the other set.
    pub(crate) fn are_within(self, other: Self) -> bool {
        self.0 != 0 && self.0 & !other.0 == 0
    }

    /// Returns whether the set contains all of a filter's `conjuncts`.
    pub(crate) fn are_all(self, conjuncts: usize) -> bool {
        usize::try_from(self.0.count_ones()).is_ok_and(|held| held == conjuncts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_64_positions_are_stored() {
        let odd =
            [1, 3, 63, 64, 65, usize::MAX].map(Conjuncts::one).into_iter().fold(Conjuncts::default(), Conjuncts::union);
        for place in [0, 1, 2, 3, 62, 63, 64, 65, 1 << 32, usize::MAX] {
            assert_eq!(odd.contains(place), [1, 3, 63].contains(&place), "{place}");
        }
        assert!(odd.are_all(3) && !odd.are_all(6));
        assert!(Conjuncts::default().are_all(0));
    }
}
