use std::borrow::Cow;

use slate_query::{
    interval::{IntervalSet, Place},
    pattern::Direction,
};

use crate::{
    catalog::IndexInfo,
    entry::{Held, MAX_UNIQUE_PREFIX},
};

/// What is asked of an index's leading fields, one set of intervals a field, over ascending key bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexBounds {
    pub(crate) fields: Vec<IntervalSet>,
}

/// A range of keys: from `start` on, and below `end` where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Option<Vec<u8>>,
}

/// Where the combinations of several fields' points outgrow this, the later fields are left to the filter.
const MAX_RANGES: usize = 4_096;

impl ByteRange {
    /// Whether the key lies in it.
    #[inline]
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && self.end.as_ref().is_none_or(|end| key < end.as_slice())
    }

    /// From one place to another. Where entries may hold less than their whole values, longer places are widened to
    /// what every entry holds: to all keys that begin with it.
    fn between(low: Place, high: Place, held: Held) -> Self {
        let start = match cut(&low, held) {
            Some(kept) => kept.to_vec(),
            None => low.into_bytes(),
        };
        let end = match cut(&high, held) {
            // Cut inside a value, any byte may follow: 0xff would not be above it.
            Some(kept) => successor(kept),
            None => Some(high.into_bytes()),
        };
        Self { start, end }
    }
}

impl IndexBounds {
    /// How many leading fields the ranges make use of: all the points, and one field of ranges after them.
    pub(crate) fn used(&self) -> usize {
        let mut ranges = 1usize;
        for (field, set) in self.fields.iter().enumerate() {
            ranges = ranges.saturating_mul(set.iter().count().max(1));
            if set.is_all() || (field > 0 && ranges > MAX_RANGES) {
                return field;
            }
            if !set.iter().all(|interval| interval.as_point().is_some()) {
                return field + 1;
            }
        }
        self.fields.len()
    }

    /// The ranges of entry keys, ascending and apart. Where every entry holds its values whole they are no wider than
    /// the bounds, which is what lets the filter be dropped.
    pub(crate) fn ranges(&self, index: &IndexInfo) -> Vec<ByteRange> {
        let (pattern, held) = (&index.pattern, index.held());
        let used = self.used();
        let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
        let mut ranges = vec![ByteRange { start: Vec::new(), end: None }];
        for (set, (_, direction)) in self.fields.iter().zip(pattern.fields()).take(used) {
            let set = directed(set, *direction);
            ranges.clear();
            let mut next = Vec::new();
            for prefix in &prefixes {
                for interval in set.iter() {
                    let (low, high) = (behind(prefix, &interval.low), behind(prefix, &interval.high));
                    ranges.push(ByteRange::between(low, high, held));
                    if let Some(point) = interval.as_point() {
                        next.push([prefix, point].concat());
                    }
                }
            }
            prefixes = next;
        }
        merge(ranges)
    }

    /// Whether the field is bound to one value.
    pub(crate) fn is_point(&self, field: usize) -> bool {
        self.fields.get(field).is_some_and(|set| set.as_point().is_some())
    }
}

/// What every entry keeps of a place's prefix, where an entry may go on behind it otherwise than values do: with what is
/// left of a value that was cut, or with a digest.
fn cut(place: &Place, held: Held) -> Option<&[u8]> {
    match held {
        Held::Truncated if place.prefix.len() >= MAX_UNIQUE_PREFIX => place.prefix.get(..MAX_UNIQUE_PREFIX),
        Held::Truncated | Held::Whole => None,
    }
}

/// The least bytes above all that begin with `prefix`; `None` where there are none.
fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let kept = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut bytes = prefix.get(..=kept)?.to_vec();
    *bytes.last_mut()? += 1;
    Some(bytes)
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
        None => vec![ByteRange { start: Vec::new(), end: None }],
        Some(set) => set
            .iter()
            .map(|interval| ByteRange { start: interval.low.to_bytes(), end: Some(interval.high.to_bytes()) })
            .collect(),
    }
}

fn behind(prefix: &[u8], place: &Place) -> Place {
    Place { prefix: [prefix, &place.prefix].concat(), side: place.side }
}

/// Joins what widening made overlap; the ranges come in ascending order.
fn merge(ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    let mut merged: Vec<ByteRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end.as_ref().is_none_or(|end| *end > range.start) => {
                // No end is the end of all.
                last.end = last.end.take().zip(range.end).map(|(a, b)| a.max(b));
            }
            _ => merged.push(range),
        }
    }
    merged
}
