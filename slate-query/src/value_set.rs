use crate::{
    order,
    raw::{OwnedValue, Value},
    work,
};

/// A set of values in which values that are equal in BSON's order count as one: int32 1 and double 1.0 are one value.
///
/// It is a sorted list, because all sets are complete before they are searched.
#[derive(Clone, Debug)]
pub(crate) struct ValueSet<V>(Vec<V>);

/// Up to this number of values a linear search is faster than a binary search.
const LINEAR_SEARCH: usize = 4;

impl<V: AsValue> ValueSet<V> {
    /// Returns whether the set contains a value that is equal to this one.
    #[inline]
    pub(crate) fn contains(&self, value: Value<'_>) -> bool {
        if self.0.len() <= LINEAR_SEARCH {
            self.0.iter().any(|other| order::equal(other.as_value(), value))
        } else {
            self.place_of(value).is_some()
        }
    }

    /// Returns the position of the value that is equal to this one; `None` if there is none.
    pub(crate) fn place_of(&self, value: Value<'_>) -> Option<usize> {
        self.0.binary_search_by(|other| order::compare(other.as_value(), value)).ok()
    }

    /// Returns the values in BSON's order.
    pub(crate) fn as_slice(&self) -> &[V] {
        &self.0
    }
}

/// Of equal values the set contains the first.
impl<V: AsValue> FromIterator<V> for ValueSet<V> {
    fn from_iter<I: IntoIterator<Item = V>>(values: I) -> Self {
        let mut values: Vec<V> = values.into_iter().collect();
        work::sort_by(&mut values, |a, b| order::compare(a.as_value(), b.as_value()));
        values.dedup_by(|a, b| order::equal(a.as_value(), b.as_value()));
        Self(values)
    }
}

/// A borrowed or an owned value.
pub(crate) trait AsValue {
    fn as_value(&self) -> Value<'_>;
}

impl AsValue for Value<'_> {
    fn as_value(&self) -> Value<'_> {
        *self
    }
}

impl AsValue for OwnedValue {
    fn as_value(&self) -> Value<'_> {
        Self::as_value(self)
    }
}
