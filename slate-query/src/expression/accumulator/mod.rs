//! Accumulators: values computed from many documents, one after the other.
//!
//! To add one: write a type that implements `AccumulatorState`, and add its line in `ACCUMULATORS`, which is sorted by name.

mod average;
mod collect;
mod count;
mod deviation;
mod extreme;
mod many;
mod merge;
pub(super) mod percentile;
mod position;
mod spec;
mod sum;

pub(crate) use percentile::number as percentile_number;
pub(crate) use spec::{AccumulatorInput, Deciding, DecidingOrder};
pub use spec::{AccumulatorSpec, Gathered};

use spec::AccumulatorForm;
pub(super) use spec::{NUMBER_CODES, number};

use super::Evaluated;
use crate::{Code, Error, Result, collation::Collation, held, raw::Value, work};

/// The state of an accumulator.
pub(super) trait AccumulatorState: std::fmt::Debug + Send {
    /// Adds the value of the operand for the next document; `None`: the value is missing. `key` orders the document, if
    /// the accumulator has a sort.
    fn add(&mut self, value: Option<Value<'_>>, key: &[u8]) -> Result<()>;

    /// Adds the value `times` times, for `times` documents with the same value. The caller checks the size of the state after the last one, so that a
    /// single value is measured once.
    ///
    /// # Errors
    /// As [`check_size`], once the values exceed the limit: the run can have as many documents as the collection.
    fn add_times(&mut self, value: Option<Value<'_>>, key: &[u8], times: u64) -> Result<()> {
        for nth in 0..times.min(self.most_equal()) {
            if nth > 0 {
                work::take(1)?;
                check_size(self.bytes())?;
            }
            self.add(value, key)?;
        }
        Ok(())
    }

    /// Returns how often adding the same value can change the state: adding it more often has the same result.
    fn most_equal(&self) -> u64 {
        u64::MAX
    }

    /// Compares strings by a collation. Called before values are added.
    fn collate(&mut self, _: &Collation) {}

    /// Returns the value for the documents so far.
    fn finish(&mut self) -> Evaluated<'static>;

    /// Returns the bytes that the state holds on the heap.
    fn bytes(&self) -> usize {
        0
    }
}

/// The most bytes that an accumulator holds for one group, as in MongoDB.
const MOST_BYTES: usize = 100 << 20;

/// Fails with `ExceededMemoryLimit` (146) above [`MOST_BYTES`] or the group's share of the call's limit.
#[inline]
fn check_size(bytes: usize) -> Result<()> {
    if bytes <= MOST_BYTES.min(held::group_limit()) { Ok(()) } else { Err(too_large(bytes)) }
}

#[cold]
fn too_large(bytes: usize) -> Error {
    if bytes <= MOST_BYTES {
        return held::exceeded("an accumulator takes for one group");
    }
    Error::new(Code::EXCEEDED_MEMORY_LIMIT, "an accumulator used more than 100 MiB of memory")
}

/// Creates the state for `n` values; `n` is 1 for accumulators of one value.
type Start = fn(n: usize) -> Stored;

/// Where a state is stored. The small states of the most frequent accumulators are stored inline, so that a group needs
/// one allocation.
#[derive(Debug)]
enum Stored {
    Average(average::Average),
    Count(count::Count),
    Extreme(extreme::Extreme),
    First(position::First),
    Last(position::Last),
    Total(sum::Total),
    Other(Box<dyn AccumulatorState>),
}

impl Stored {
    /// Adds a value, and adds the growth of the state's heap memory, in bytes, to `heap`. The most frequent accumulators
    /// are not measured for each value.
    #[inline]
    fn add_and_measure(&mut self, value: Option<Value<'_>>, key: &[u8], times: u64, heap: &mut usize) -> Result<()> {
        match self {
            Self::Average(state) => state.add_times(value, key, times),
            Self::Count(state) => state.add_times(value, key, times),
            Self::Extreme(state) => {
                state.offer(value, heap);
                Ok(())
            }
            Self::Total(state) => state.add_times(value, key, times),
            state => state.add_other(value, key, times, heap),
        }
    }

    #[inline(never)]
    fn add_other(&mut self, value: Option<Value<'_>>, key: &[u8], times: u64, heap: &mut usize) -> Result<()> {
        let before = self.bytes();
        self.add_times(value, key, times)?;
        let bytes = self.bytes();
        check_size(bytes)?;
        *heap = (*heap + bytes).saturating_sub(before);
        Ok(())
    }

    fn other(state: impl AccumulatorState + 'static) -> Self {
        Self::Other(Box::new(state))
    }

    /// Returns the state for the values of both states. `None` if the accumulator cannot compute it from them.
    fn merged(&self, other: &Self) -> Option<Self> {
        Some(match (self, other) {
            (Self::Average(a), Self::Average(b)) => Self::Average(a.merged(b)),
            (Self::Count(a), Self::Count(b)) => Self::Count(a.merged(*b)),
            (Self::Extreme(a), Self::Extreme(b)) => Self::Extreme(a.merged(b)),
            (Self::Total(a), Self::Total(b)) => Self::Total(a.merged(b)),
            _ => return None,
        })
    }

    /// Returns a copy of a state that can be [merged](Self::merged); `None` for other states.
    fn copied(&self) -> Option<Self> {
        Some(match self {
            Self::Average(state) => Self::Average(state.clone()),
            Self::Count(state) => Self::Count(*state),
            Self::Extreme(state) => Self::Extreme(state.clone()),
            Self::Total(state) => Self::Total(state.clone()),
            Self::First(_) | Self::Last(_) | Self::Other(_) => return None,
        })
    }
}

/// Calls a method of the state; for the frequent accumulators without a virtual call.
macro_rules! of_state {
    ($stored:expr, $state:ident => $call:expr) => {
        match $stored {
            Stored::Average($state) => $call,
            Stored::Count($state) => $call,
            Stored::Extreme($state) => $call,
            Stored::First($state) => $call,
            Stored::Last($state) => $call,
            Stored::Total($state) => $call,
            Stored::Other($state) => $call,
        }
    };
}

impl AccumulatorState for Stored {
    #[inline]
    fn add(&mut self, value: Option<Value<'_>>, key: &[u8]) -> Result<()> {
        of_state!(self, state => state.add(value, key))
    }

    #[inline]
    fn add_times(&mut self, value: Option<Value<'_>>, key: &[u8], times: u64) -> Result<()> {
        of_state!(self, state => state.add_times(value, key, times))
    }

    fn most_equal(&self) -> u64 {
        of_state!(self, state => state.most_equal())
    }

    fn collate(&mut self, collation: &Collation) {
        of_state!(self, state => state.collate(collation));
    }

    fn finish(&mut self) -> Evaluated<'static> {
        of_state!(self, state => state.finish())
    }

    #[inline]
    fn bytes(&self) -> usize {
        let boxed = if let Self::Other(state) = self { size_of_val(&**state) } else { 0 };
        boxed + of_state!(self, state => state.bytes())
    }
}

/// Sorted by name. `None`: MongoDB has the accumulator, Slate does not.
static ACCUMULATORS: &[(&str, Option<(AccumulatorForm, Start)>)] = &[
    ("$accumulator", None),
    ("$addToSet", Some((AccumulatorForm::Operand, |_| Stored::other(collect::AddToSet::default())))),
    ("$avg", Some((AccumulatorForm::Operand, |_| Stored::Average(average::Average::default())))),
    ("$bottom", Some((AccumulatorForm::Sorted, |_| Stored::other(many::Ordered::only(many::OrderEnd::Bottom))))),
    (
        "$bottomN",
        Some((AccumulatorForm::SortedN, |n| Stored::other(many::Ordered::several(many::OrderEnd::Bottom, n)))),
    ),
    (
        "$concatArrays",
        Some((AccumulatorForm::Operand, |_| {
            Stored::other(collect::ElementsOf { name: "$concatArrays", state: collect::Push::default() })
        })),
    ),
    ("$count", Some((AccumulatorForm::Nothing, |_| Stored::Count(count::Count::default())))),
    ("$first", Some((AccumulatorForm::Operand, |_| Stored::First(position::First::default())))),
    ("$firstN", Some((AccumulatorForm::OperandN, |n| Stored::other(many::Ends::new(n, many::End::First))))),
    ("$last", Some((AccumulatorForm::Operand, |_| Stored::Last(position::Last::default())))),
    ("$lastN", Some((AccumulatorForm::OperandN, |n| Stored::other(many::Ends::new(n, many::End::Last))))),
    ("$max", Some((AccumulatorForm::Operand, |_| Stored::Extreme(extreme::Extreme::max())))),
    ("$maxN", Some((AccumulatorForm::OperandN, |n| Stored::other(many::Extremes::max(n))))),
    (
        "$median",
        Some((AccumulatorForm::Percentile, |_| Stored::other(percentile::Percentile::new(percentile::Ranks::Median)))),
    ),
    ("$mergeObjects", Some((AccumulatorForm::Operand, |_| Stored::other(merge::MergeObjects::default())))),
    ("$min", Some((AccumulatorForm::Operand, |_| Stored::Extreme(extreme::Extreme::min())))),
    ("$minN", Some((AccumulatorForm::OperandN, |n| Stored::other(many::Extremes::min(n))))),
    (
        "$percentile",
        Some((AccumulatorForm::Percentile, |_| Stored::other(percentile::Percentile::new(percentile::Ranks::Median)))),
    ),
    ("$push", Some((AccumulatorForm::Operand, |_| Stored::other(collect::Push::default())))),
    (
        "$setUnion",
        Some((AccumulatorForm::Operand, |_| {
            Stored::other(collect::ElementsOf { name: "$setUnion", state: collect::AddToSet::default() })
        })),
    ),
    ("$stdDevPop", Some((AccumulatorForm::Operand, |_| Stored::other(deviation::Deviation::population())))),
    ("$stdDevSamp", Some((AccumulatorForm::Operand, |_| Stored::other(deviation::Deviation::sample())))),
    ("$sum", Some((AccumulatorForm::Operand, |_| Stored::Total(sum::Total::default())))),
    ("$top", Some((AccumulatorForm::Sorted, |_| Stored::other(many::Ordered::only(many::OrderEnd::Top))))),
    ("$topN", Some((AccumulatorForm::SortedN, |n| Stored::other(many::Ordered::several(many::OrderEnd::Top, n))))),
];

/// Returns the names of the supported accumulators.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ACCUMULATORS.iter().filter(|(_, line)| line.is_some()).map(|(name, _)| *name)
}

/// Returns the line of this name; `None` if MongoDB has no such accumulator.
fn find(name: &str) -> Option<Option<(AccumulatorForm, Start)>> {
    let place = ACCUMULATORS.binary_search_by(|(other, _)| (*other).cmp(name)).ok()?;
    ACCUMULATORS.get(place).map(|(_, line)| *line)
}

/// Starts the accumulator of this name, which has one operand, for use as an expression. `None` for an unknown name.
pub(super) fn start(name: &str, n: usize, collation: Option<&Collation>) -> Option<impl AccumulatorState> {
    let (_, start) = find(name)??;
    let mut state = start(n);
    collation.into_iter().for_each(|collation| state.collate(collation));
    Some(state)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, atomic::AtomicUsize};

    use super::*;
    use crate::{expression::Variables, raw::Kind, work::tests::Checks};

    /// Accumulators whose state a run of equal values changes once or `n` times, those that compute the sum of a run, and those that
    /// add each value.
    const BOUNDED: [&str; 15] = [
        "$addToSet",
        "$bottom",
        "$bottomN",
        "$first",
        "$firstN",
        "$last",
        "$lastN",
        "$max",
        "$maxN",
        "$mergeObjects",
        "$min",
        "$minN",
        "$setUnion",
        "$top",
        "$topN",
    ];
    const SUMMED: [&str; 3] = ["$avg", "$count", "$sum"];
    const EACH: [&str; 6] = ["$concatArrays", "$median", "$percentile", "$push", "$stdDevPop", "$stdDevSamp"];

    fn values(name: &str) -> Vec<Value<'static>> {
        match name {
            "$mergeObjects" => vec![Value::new(Kind::Document, b"\x08\0\0\0\x0aa\0\0")],
            "$setUnion" | "$concatArrays" => {
                vec![Value::new(Kind::Array, b"\x0c\0\0\0\x100\0\x07\0\0\0\0")]
            }
            _ => [b"\x02\0\0\0", b"\x01\0\0\0", b"\x02\0\0\0", b"\x03\0\0\0"]
                .map(|number| Value::new(Kind::Int32, number))
                .to_vec(),
        }
    }

    #[test]
    fn a_run_of_equal_values_adds_each_of_them() {
        for name in BOUNDED.into_iter().chain(SUMMED).chain(EACH) {
            for times in 1..5 {
                let (mut together, mut apart) = (start(name, 3, None).unwrap(), start(name, 3, None).unwrap());
                for value in values(name) {
                    let key = value.bytes().first().copied().unwrap_or_default();
                    together.add_times(Some(value), &[key], times).unwrap();
                    (0..times).for_each(|_| apart.add(Some(value), &[key]).unwrap());
                }
                let [together, apart] =
                    [together, apart].map(|mut state| state.finish().as_value().map(Value::to_owned));
                assert_eq!(format!("{together:?}"), format!("{apart:?}"), "{name}, {times} times");
            }
        }
    }

    #[test]
    fn a_long_run_of_equal_values_takes_few_steps_or_counts_them() {
        let long = 1 << 20;
        let add = |name| {
            let mut state = start(name, 3, None).unwrap();
            let value = values(name)[0];
            work::during(Arc::new(Checks(AtomicUsize::new(2))), || state.add_times(Some(value), &[], long))
        };
        for name in BOUNDED.into_iter().chain(SUMMED) {
            assert!(add(name).is_ok_and(|added| added.is_ok()), "{name}");
        }
        for name in EACH {
            assert_eq!(add(name).unwrap_err().code(), Code::INTERRUPTED, "{name}");
        }
    }

    #[test]
    fn a_run_of_equal_values_ends_at_the_limit_of_a_group() {
        let limit = 4 << 20;
        let long = vec![b'x'; 1 << 10];
        let text = [&1_025_i32.to_le_bytes(), long.as_slice(), b"\0"].concat();
        let gathering = ["$firstN", "$lastN", "$maxN", "$minN", "$topN", "$bottomN", "$push", "$median", "$percentile"];
        for name in gathering {
            let value = match name {
                "$median" | "$percentile" => values(name)[0],
                _ => Value::new(Kind::String, &text),
            };
            let mut state = start(name, 1 << 30, None).unwrap();
            let added = held::within(Some(limit), || state.add_times(Some(value), &[], 1 << 20));
            assert_eq!(added.unwrap_err().code(), Code::EXCEEDED_MEMORY_LIMIT, "{name}");
            // A list that doubles, and the state itself.
            assert!(state.bytes() <= limit + (1 << 10), "{name}: {} bytes", state.bytes());
        }
    }

    #[test]
    fn the_values_that_decide_a_window_are_limited_as_those_of_a_group() {
        let operand = Value::new(Kind::String, b"\x03\0\0\0$a\0");
        let spec = AccumulatorSpec::parse("$addToSet", operand, &Variables::default()).unwrap();
        let text = [&1_025_i32.to_le_bytes(), vec![b'x'; 1 << 10].as_slice(), b"\0"].concat();
        let of = |count| {
            let values = std::iter::repeat_n(Some(Value::new(Kind::String, &text)), count);
            held::within(Some(1 << 20), || spec.of_decided(spec.deciding().unwrap(), values))
        };
        // Half of the limit is for the row into which they are copied.
        assert!(of(450).is_ok());
        assert_eq!(of(550).unwrap_err().code(), Code::EXCEEDED_MEMORY_LIMIT);
    }

    #[test]
    fn every_accumulator_is_tried_with_runs() {
        let mut tried: Vec<_> = BOUNDED.into_iter().chain(SUMMED).chain(EACH).collect();
        tried.sort_unstable();
        assert_eq!(tried, names().collect::<Vec<_>>());
    }

    #[test]
    fn the_table_is_sorted_by_name() {
        assert!(ACCUMULATORS.is_sorted_by_key(|(name, _)| name));
    }
}
