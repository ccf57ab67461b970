use std::hash::{BuildHasher, Hasher};

use ahash::RandomState;
use hashbrown::HashTable;

use crate::{
    key,
    number::Number,
    raw::{Kind, Value, same},
};

/// Finds groups by the values that documents are grouped by. Values that compare as equal are one group, which has the value of
/// its first document.
///
/// The values are end to end in one buffer, so that a group costs no allocation. A value is found by its *identity*: its own bytes
/// where only equal bytes are equal values, an int64 for whole numbers of any type, and its key otherwise.
#[derive(Debug, Default)]
pub(super) struct GroupIndex {
    table: HashTable<Slot>,
    places: Vec<GroupPlace>,
    /// For each group its identity, then its value if that has other bytes than the identity.
    bytes: Vec<u8>,
    hasher: RandomState,
    scratch: Vec<u8>,
    /// The group of the last document: documents of one group often follow each other, and a constant makes one group.
    last: usize,
}

/// A group in the table. It has the hash, so that neither a search nor the growth of the table reads other groups' memory.
#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    number: u32,
}

/// A group in the buffer.
#[derive(Clone, Copy, Debug)]
struct GroupPlace {
    start: usize,
    /// Where the identity ends.
    middle: usize,
    end: usize,
    /// Whether the value has the same bytes as the identity. Otherwise the value follows the identity.
    is_identity: bool,
    class: Class,
    kind: Kind,
}

/// How the identity of a value is encoded. Values of different classes differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// As a key.
    Key,
    /// As an int64.
    Whole,
    /// The bytes of a string or symbol.
    Text,
    /// The bytes of the value.
    ObjectId,
    Date,
    Null,
}

impl GroupIndex {
    /// Bytes that a group takes in addition to its value.
    const OVERHEAD: usize = size_of::<GroupPlace>() + 2 * size_of::<Slot>();

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the memory that the index uses, in bytes; `usize::MAX` if the index can have no more groups.
    #[inline]
    pub(super) fn memory(&self) -> usize {
        match u32::try_from(self.places.len()) {
            Ok(groups) if groups < u32::MAX => self.bytes.len() + self.places.len() * Self::OVERHEAD,
            _ => usize::MAX,
        }
    }

    /// Returns the memory that the index has allocated, in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.table.capacity() * size_of::<Slot>()
            + self.places.capacity() * size_of::<GroupPlace>()
            + self.bytes.capacity()
    }

    pub(super) fn clear(&mut self) {
        /// A table with less than one group per this many slots is replaced: clearing it takes longer than filling a new one.
        const PLACES_PER_GROUP: usize = 64;
        if self.table.len() * PLACES_PER_GROUP < self.table.capacity() {
            self.table = HashTable::new();
        }
        self.table.clear();
        self.places.clear();
        self.bytes.clear();
    }

    /// Returns the number of the group of documents with this value. If there is no such group, starts one with the value
    /// `shown`.
    #[inline]
    pub(super) fn enter(&mut self, value: Value<'_>, shown: Value<'_>) -> usize {
        let (class, identity) = identity(value, &mut self.scratch);
        if is_at(&self.places, &self.bytes, self.last, class, identity) {
            return self.last;
        }
        let hash = hash(&self.hasher, identity);
        let is_group =
            |slot: &Slot| slot.hash == hash && is_at(&self.places, &self.bytes, slot.number(), class, identity);
        if let Some(slot) = self.table.find(spread(hash), is_group) {
            self.last = slot.number();
            return self.last;
        }
        let (number, start) = (self.places.len(), self.bytes.len());
        self.bytes.extend_from_slice(identity);
        let middle = self.bytes.len();
        let is_identity = identity == shown.bytes();
        if !is_identity {
            self.bytes.extend_from_slice(shown.bytes());
        }
        self.places.push(GroupPlace { start, middle, end: self.bytes.len(), is_identity, class, kind: shown.kind() });
        self.last = number;
        let slot = Slot { hash, number: u32::try_from(number).unwrap_or(u32::MAX) };
        self.table.insert_unique(spread(hash), slot, |slot| spread(slot.hash));
        number
    }

    /// Returns whether a document with this value belongs to the group with this number.
    pub(super) fn is(&mut self, number: usize, value: Value<'_>) -> bool {
        let (class, identity) = identity(value, &mut self.scratch);
        is_at(&self.places, &self.bytes, number, class, identity)
    }

    /// Returns the value of a group's first document; null for a group that does not exist.
    #[inline]
    pub(super) fn value(&self, number: usize) -> Value<'_> {
        let Some(place) = self.places.get(number) else { return Value::NULL };
        let start = if place.is_identity { place.start } else { place.middle };
        Value::new(place.kind, self.bytes.get(start..place.end).unwrap_or_default())
    }
}

impl Slot {
    #[inline]
    fn number(self) -> usize {
        usize::try_from(self.number).unwrap_or(usize::MAX)
    }
}

#[inline]
fn hash(hasher: &RandomState, identity: &[u8]) -> u32 {
    let mut hasher = hasher.build_hasher();
    hasher.write(identity);
    let [a, b, c, d, ..] = hasher.finish().to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Repeats the hash in both halves, because the table uses its first bits and its last.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash) << u32::BITS | u64::from(hash)
}

#[inline]
fn is_at(places: &[GroupPlace], bytes: &[u8], number: usize, class: Class, identity: &[u8]) -> bool {
    places.get(number).is_some_and(|place| {
        place.class == class && bytes.get(place.start..place.middle).is_some_and(|bytes| same(bytes, identity))
    })
}

/// Returns the identity of a value: equal for equal values, and different for different ones.
#[inline]
fn identity<'i>(value: Value<'i>, scratch: &'i mut Vec<u8>) -> (Class, &'i [u8]) {
    let class = match value.kind() {
        Kind::String | Kind::Symbol => Class::Text,
        Kind::ObjectId => Class::ObjectId,
        Kind::DateTime => Class::Date,
        Kind::Null => Class::Null,
        Kind::Int64 => Class::Whole,
        _ => return computed(value, scratch),
    };
    (class, value.bytes())
}

fn computed<'i>(value: Value<'_>, scratch: &'i mut Vec<u8>) -> (Class, &'i [u8]) {
    scratch.clear();
    match Number::of(value).and_then(Number::to_i64) {
        Some(whole) => {
            scratch.extend_from_slice(&whole.to_le_bytes());
            (Class::Whole, scratch)
        }
        None => {
            key::encode(value, scratch);
            (Class::Key, scratch)
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::{Bson, bson};

    use super::*;
    use crate::{order, raw::OwnedValue};

    #[test]
    fn values_are_one_group_if_they_compare_as_equal() {
        let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
        let values = [
            bson!(null),
            Bson::Undefined,
            bson!(0),
            bson!(-0.0),
            decimal("0.0"),
            decimal("-0"),
            bson!(1),
            bson!(1_i64),
            bson!(1.0),
            decimal("1.00"),
            bson!(0.5),
            decimal("0.5"),
            bson!(0.1),
            decimal("0.1"),
            bson!(f64::NAN),
            decimal("NaN"),
            bson!(f64::INFINITY),
            decimal("Infinity"),
            bson!(9_007_199_254_740_993_i64),
            bson!(9_007_199_254_740_992.0),
            bson!(1e300),
            bson!("a"),
            Bson::Symbol("a".into()),
            bson!(""),
            bson!({"a": 1}),
            bson!({"a": 1.0}),
            bson!([1, 2]),
            bson!([1.0, 2]),
            bson!(true),
            bson!(false),
            Bson::DateTime(bson::DateTime::from_millis(1)),
            Bson::Timestamp(bson::Timestamp { time: 0, increment: 1 }),
            Bson::ObjectId(bson::oid::ObjectId::from_bytes([7; 12])),
            Bson::MinKey,
            Bson::MaxKey,
        ]
        .map(OwnedValue::from);
        let mut index = GroupIndex::default();
        let numbers: Vec<usize> = values.iter().map(|value| index.enter(value.as_value(), value.as_value())).collect();
        for (a, of_a) in values.iter().zip(&numbers) {
            for (b, of_b) in values.iter().zip(&numbers) {
                let are_equal = order::compare(a.as_value(), b.as_value()).is_eq();
                assert_eq!(of_a == of_b, are_equal, "{a:?} and {b:?}");
                assert_eq!(index.is(*of_a, b.as_value()), are_equal, "{a:?} and {b:?}");
            }
            let first = numbers.iter().position(|number| number == of_a).unwrap();
            assert_eq!(index.value(*of_a), values[first].as_value(), "the value of the first document is returned");
        }
    }
}
