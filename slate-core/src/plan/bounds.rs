use std::borrow::Cow;

use slate_query::{
    interval::{Interval, IntervalSet, Place},
    path::Path,
    pattern::Direction,
    raw::SmallBytes,
};

use crate::{
    catalog::IndexInfo,
    entry::{Held, MAX_UNIQUE_PREFIX},
};

/// What is asked of an index's leading fields, and the ranges of entry keys that come of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexBounds {
    fields: Vec<IntervalSet>,
    /// Ascending and apart; of no bounds, none.
    ranges: Vec<ByteRange>,
}

/// A range of keys: from `start` on, and below `end` where there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) start: SmallBytes,
    pub(crate) end: Option<SmallBytes>,
}

impl ByteRange {
    /// Whether the key lies in it.
    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_deref().is_none_or(|end| key < end)
    }

    /// Whether it holds every key.
    pub(crate) fn is_all(&self) -> bool {
        self.start.is_empty() && self.end.is_none()
    }

    /// The keys that begin with one of a field's values within the interval, in an index that holds the field in this
    /// direction, and whole.
    pub(crate) fn component(values: &Interval, direction: Direction) -> Self {
        match direction {
            Direction::Ascending => Self::between(&[], values, Held::Whole),
            Direction::Descending => Self::between(&[], &values.inverted(), Held::Whole),
        }
    }

    /// The keys that begin with the values `before`, from one place behind those to another. Where entries may hold less
    /// than their whole values, longer places are widened to what every entry holds: to all keys that begin with it.
    fn between(before: &[u8], interval: &Interval, held: Held) -> Self {
        let low = interval.low().to_bytes_behind(before);
        let start = if is_cut(before, interval.low(), held) { kept(&low).into() } else { low };
        let high = interval.high().to_bytes_behind(before);
        // Cut inside a value, any byte may follow: 0xff would not be above it.
        let end = if is_cut(before, interval.high(), held) { successor(kept(&high)) } else { Some(high) };
        Self { start, end }
    }
}

impl IndexBounds {
    /// Bounds on the leading fields, all of them points but the last. The ranges are no wider than the bounds where every
    /// entry holds its values whole, which is what lets the filter be dropped.
    pub(crate) fn new(index: &IndexInfo, fields: Vec<IntervalSet>) -> Self {
        if fields.is_empty() {
            return Self::default();
        }
        let held = index.held();
        let mut ranges = Vec::with_capacity(fields.iter().map(IntervalSet::len).product());
        lay_out(&[], &fields, index.pattern.fields(), held, &mut ranges);
        // Widening may have made them overlap.
        let ranges = if held == Held::Whole { ranges } else { merge(ranges) };
        Self { fields, ranges }
    }

    /// How many leading fields are bound: all the points, and one field of ranges after them.
    pub(crate) fn used(&self) -> usize {
        self.fields.len()
    }

    /// The intervals of each bound field, over ascending key bytes.
    pub(crate) fn fields(&self) -> &[IntervalSet] {
        &self.fields
    }

    /// The ranges of entry keys, where a field is bound.
    pub(crate) fn ranges(&self) -> &[ByteRange] {
        &self.ranges
    }

    /// The ranges of entry keys, ascending and apart.
    pub(crate) fn into_ranges(self) -> Vec<ByteRange> {
        if self.fields.is_empty() { vec![ByteRange::default()] } else { self.ranges }
    }

    /// Whether the field is bound to one value.
    pub(crate) fn is_point(&self, field: usize) -> bool {
        self.fields.get(field).is_some_and(|set| set.as_point().is_some())
    }

    /// Whether every one of so many fields is bound to values, and to no range of them.
    pub(crate) fn are_points(&self, fields: usize) -> bool {
        self.fields.len() == fields && self.fields.iter().all(IntervalSet::is_points)
    }
}

/// Appends the ranges of entries that begin with the values `before` and whose further fields lie within `fields`.
fn lay_out(
    before: &[u8],
    fields: &[IntervalSet],
    pattern: &[(Path, Direction)],
    held: Held,
    ranges: &mut Vec<ByteRange>,
) {
    let (Some((set, fields)), Some(((_, direction), pattern))) = (fields.split_first(), pattern.split_first()) else {
        return;
    };
    for interval in directed(set, *direction).iter() {
        match interval.as_point() {
            Some(point) if !fields.is_empty() => {
                lay_out(&SmallBytes::concat(&[before, point]), fields, pattern, held, ranges);
            }
            _ => ranges.push(ByteRange::between(before, interval, held)),
        }
    }
}

/// Whether a place lies behind what every entry keeps, where an entry may go on behind it otherwise than values do: with
/// what is left of a value that was cut, or with a digest.
fn is_cut(before: &[u8], place: &Place, held: Held) -> bool {
    match held {
        Held::Truncated => before.len() + place.prefix.len() >= MAX_UNIQUE_PREFIX,
        Held::Whole => false,
    }
}

/// What every entry keeps of such a place.
fn kept(place: &[u8]) -> &[u8] {
    place.get(..MAX_UNIQUE_PREFIX).unwrap_or(place)
}

/// The least bytes above all that begin with `prefix`; `None` where there are none.
fn successor(prefix: &[u8]) -> Option<SmallBytes> {
    let (last, before) = prefix.get(..=prefix.iter().rposition(|&byte| byte != 0xff)?)?.split_last()?;
    Some(SmallBytes::concat(&[before, &[last + 1]]))
}

/// Ranges of one field's encoded values, in the field's direction: a value lies in one where it lies in the set.
pub(crate) fn component_ranges(set: &IntervalSet, direction: Direction) -> Vec<ByteRange> {
    record_ranges(Some(&directed(set, direction)))
}

/// The set among keys of that direction.
fn directed(set: &IntervalSet, direction: Direction) -> Cow<'_, IntervalSet> {
    match direction {
        Direction::Ascending => Cow::Borrowed(set),
        Direction::Descending => Cow::Owned(set.inverted()),
    }
}

/// Ranges over record keys, from bounds on `_id`.
pub(crate) fn record_ranges(bounds: Option<&IntervalSet>) -> Vec<ByteRange> {
    match bounds {
        None => vec![ByteRange::default()],
        Some(set) => set.iter().map(|interval| ByteRange::between(&[], interval, Held::Whole)).collect(),
    }
}

/// Joins what widening made overlap; the ranges come in ascending order.
fn merge(ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    let mut merged: Vec<ByteRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end.as_deref().is_none_or(|end| *end > *range.start) => {
                // No end is the end of all.
                last.end = last.end.take().zip(range.end).map(|(a, b)| if *a < *b { b } else { a });
            }
            _ => merged.push(range),
        }
    }
    merged
}
