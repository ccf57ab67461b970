//! Accumulators: values computed from many documents, one after the other.
//!
//! To add one: write a type that implements `State`, and add its line in `ACCUMULATORS`, which is sorted by name.

mod average;
mod collect;
mod count;
mod deviation;
mod extreme;
mod many;
mod merge;
mod position;
mod spec;
mod sum;

pub use spec::{Accumulator, AccumulatorSpec};

use spec::Form;
pub(super) use spec::number;

use super::Evaluated;
use crate::{Result, raw::Value};

/// What an accumulator has gathered.
pub(super) trait State: std::fmt::Debug + Send {
    /// Adds the value of the operand for the next document; `None`: it is missing. `key` orders the document, if the
    /// accumulator has a sort.
    fn add(&mut self, value: Option<Value<'_>>, key: &[u8]) -> Result<()>;

    /// The value for the documents so far.
    fn finish(&mut self) -> Evaluated<'static>;

    /// The bytes that it holds on the heap.
    fn bytes(&self) -> usize {
        0
    }
}

/// Creates the state for `n` values; `n` is 1 for accumulators of one value.
type Start = fn(n: usize) -> Box<dyn State>;

/// Sorted by name. `None`: MongoDB has it, Slate does not.
static ACCUMULATORS: &[(&str, Option<(Form, Start)>)] = &[
    ("$accumulator", None),
    ("$addToSet", Some((Form::Operand, |_| Box::new(collect::AddToSet::default())))),
    ("$avg", Some((Form::Operand, |_| Box::new(average::Average::default())))),
    ("$bottom", Some((Form::Sorted, |_| Box::new(many::Ordered::only(many::End::Bottom))))),
    ("$bottomN", Some((Form::SortedN, |n| Box::new(many::Ordered::several(many::End::Bottom, n))))),
    ("$concatArrays", Some((Form::Operand, |_| Box::new(collect::ConcatArrays::default())))),
    ("$count", Some((Form::Nothing, |_| Box::new(count::Count::default())))),
    ("$first", Some((Form::Operand, |_| Box::new(position::First::default())))),
    ("$firstN", Some((Form::OperandN, |n| Box::new(many::FirstN::new(n))))),
    ("$last", Some((Form::Operand, |_| Box::new(position::Last::default())))),
    ("$lastN", Some((Form::OperandN, |n| Box::new(many::LastN::new(n))))),
    ("$max", Some((Form::Operand, |_| Box::new(extreme::Extreme::max())))),
    ("$maxN", Some((Form::OperandN, |n| Box::new(many::Extremes::max(n))))),
    ("$median", None),
    ("$mergeObjects", Some((Form::Operand, |_| Box::new(merge::MergeObjects::default())))),
    ("$min", Some((Form::Operand, |_| Box::new(extreme::Extreme::min())))),
    ("$minN", Some((Form::OperandN, |n| Box::new(many::Extremes::min(n))))),
    ("$percentile", None),
    ("$push", Some((Form::Operand, |_| Box::new(collect::Push::default())))),
    ("$setUnion", Some((Form::Operand, |_| Box::new(collect::SetUnion::default())))),
    ("$stdDevPop", Some((Form::Operand, |_| Box::new(deviation::Deviation::population())))),
    ("$stdDevSamp", Some((Form::Operand, |_| Box::new(deviation::Deviation::sample())))),
    ("$sum", Some((Form::Operand, |_| Box::new(sum::Total::default())))),
    ("$top", Some((Form::Sorted, |_| Box::new(many::Ordered::only(many::End::Top))))),
    ("$topN", Some((Form::SortedN, |n| Box::new(many::Ordered::several(many::End::Top, n))))),
];

/// The line of this name; `None` if MongoDB has no such accumulator.
fn find(name: &str) -> Option<Option<(Form, Start)>> {
    let place = ACCUMULATORS.binary_search_by(|(other, _)| (*other).cmp(name)).ok()?;
    ACCUMULATORS.get(place).map(|(_, line)| *line)
}

/// Starts the accumulator of this name, which has one operand, for use as an expression.
pub(super) fn start(name: &str, n: usize) -> Option<Box<dyn State>> {
    find(name)?.map(|(_, start)| start(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_by_name() {
        assert!(ACCUMULATORS.is_sorted_by_key(|(name, _)| name));
    }
}
