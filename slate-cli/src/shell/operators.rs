//! The names of operators and stages that completion offers.

use std::collections::BTreeSet;

use slate_core::OperatorKind;

/// Returns the names that a command with these words can contain, sorted.
pub(super) fn of(words: &[&str]) -> BTreeSet<&'static str> {
    use OperatorKind::{Accumulator, Expression, Filter, Stage, Update, WindowFunction};

    let kinds: &[OperatorKind] = if words.contains(&"aggregate") {
        &[Stage, Expression, Accumulator, WindowFunction, Filter]
    } else if words.contains(&"update") {
        &[Filter, Update]
    } else {
        &[Filter]
    };
    kinds.iter().flat_map(|kind| kind.names()).collect()
}
