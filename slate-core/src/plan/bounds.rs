use std::borrow::Cow;

use slate_query::{
    interval::{Interval, IntervalSet, Place},
    path::Path,
    pattern::Direction,
    raw::SmallBytes,
};

use crate::{
    catalog::{Held, IndexInfo},
    entry::MAX_UNIQUE_PREFIX,
    key_range::KeyRange,
};

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

    /// Returns the intervals of each bound field, over ascending key bytes.
    pub(crate) fn fields(&self) -> &[IntervalSet] {
        &self.fields
    }

    /// Returns the ranges of entry keys if they are limited.
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

    /// Returns whether a record has at most one entry within the bounds. The entries of a record differ only in fields with
    /// arrays, so at most one of them has a given value in each of these fields. Truncated values may be equal to it, too.
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

/// Returns whether a position is beyond the untruncated part of an entry's values.
fn is_cut(before: &[u8], place: &Place, held: Held) -> bool {
    match held {
        Held::Truncated => before.len() + place.prefix.len() >= MAX_UNIQUE_PREFIX,
        Held::Whole => false,
    }
}

fn untruncated(place: &[u8]) -> &[u8] {
    place.get(..MAX_UNIQUE_PREFIX).unwrap_or(place)
}

/// Returns the least bytes above all that start with `prefix`; `None` if all such bytes are 0xff.
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
