//! Drops the fields that no later stage reads from the documents of an `$unwind`, so that they are not copied for each element.

use slate_query::pipeline::{Needs, Stage};

pub(super) fn apply(stages: &mut [Stage]) -> bool {
    let (mut needs, mut is_changed) = (Needs::Whole, false);
    for stage in stages.iter_mut().rev() {
        if let Stage::Unwind(unwind) = stage {
            is_changed |= needs != Needs::Whole;
            unwind.keep(needs.clone());
        }
        needs = stage.needs(needs);
    }
    is_changed
}
