use std::collections::HashSet;

use ahash::RandomState;

use super::{AccumulatorState, check_size};
use crate::{
    Result,
    collation::{Collation, Compared},
    expression::{Evaluated, arguments::wrong_type},
    key,
    raw::{Kind, SmallBytes, Value, Writer, digits},
    value_set::AsValue as _,
    work,
};

/// An array that grows.
#[derive(Debug, Default)]
struct Gathered {
    array: Writer,
    length: usize,
    bytes: usize,
}

impl Gathered {
    fn push(&mut self, value: Value<'_>) -> Result<()> {
        work::take(1 + value.bytes().len() / 256)?;
        self.bytes += value.bytes().len() + 8;
        check_size(self.bytes)?;
        self.array.append(digits(self.length).as_bytes(), value);
        self.length += 1;
        Ok(())
    }

    fn finish(&mut self) -> Evaluated<'static> {
        let array = std::mem::take(&mut self.array).finish();
        if work::spend_copied(array.len()) { Evaluated::of(Kind::Array, &array) } else { Evaluated::NULL }
    }
}

/// `$push`: all values that are not missing.
#[derive(Debug, Default)]
pub(super) struct Push(Gathered);

impl AccumulatorState for Push {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        value.map_or(Ok(()), |value| self.0.push(value))
    }

    fn finish(&mut self) -> Evaluated<'static> {
        self.0.finish()
    }

    fn bytes(&self) -> usize {
        self.0.array.capacity()
    }
}

/// `$addToSet`: the different values that are not missing, in the order of their first occurrence.
#[derive(Debug, Default)]
pub(super) struct AddToSet {
    /// The keys of the values.
    keys: HashSet<SmallBytes, RandomState>,
    collation: Option<Collation>,
    values: Gathered,
}

impl AccumulatorState for AddToSet {
    fn add(&mut self, value: Option<Value<'_>>, _: &[u8]) -> Result<()> {
        let Some(value) = value else { return Ok(()) };
        let mut key = Vec::new();
        key::encode(Compared::new(self.collation.as_ref(), value).as_value(), &mut key);
        if self.keys.insert(key.as_slice().into()) { self.values.push(value) } else { Ok(()) }
    }

    fn most_equal(&self) -> u64 {
        1
    }

    fn collate(&mut self, collation: &Collation) {
        self.collation = Some(collation.clone());
    }

    fn finish(&mut self) -> Evaluated<'static> {
        self.values.finish()
    }

    fn bytes(&self) -> usize {
        self.values.array.capacity() + self.values.bytes + self.keys.len() * 2 * size_of::<SmallBytes>()
    }
}

/// Accumulates the elements of operands that must be arrays: `$concatArrays` and `$setUnion`.
#[derive(Debug)]
pub(super) struct ElementsOf<S> {
    /// The name of the accumulator.
    pub(super) name: &'static str,
    pub(super) state: S,
}

impl<S: AccumulatorState> AccumulatorState for ElementsOf<S> {
    fn add(&mut self, value: Option<Value<'_>>, key: &[u8]) -> Result<()> {
        let Some(value) = value else { return Ok(()) };
        let wrong = || wrong_type(self.name, 14, "arrays", &Evaluated::Borrowed(value));
        let array = value.as_array().ok_or_else(wrong)?;
        array.values().try_for_each(|element| self.state.add(Some(element), key))
    }

    fn most_equal(&self) -> u64 {
        self.state.most_equal()
    }

    fn collate(&mut self, collation: &Collation) {
        self.state.collate(collation);
    }

    fn finish(&mut self) -> Evaluated<'static> {
        self.state.finish()
    }

    fn bytes(&self) -> usize {
        self.state.bytes()
    }
}
