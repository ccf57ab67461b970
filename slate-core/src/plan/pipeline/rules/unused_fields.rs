//! Drops the fields that no later stage reads from the documents of an `$unwind` or a `$lookup`, so that they are not copied for each
//! element or match.

use slate_query::pipeline::{Needs, Stage};

pub(super) fn apply(stages: &mut [Stage]) -> bool {
    let (mut needs, mut is_changed) = (Needs::Whole, false);
    for stage in stages.iter_mut().rev() {
        match stage {
            Stage::Unwind(unwind) => unwind.keep(needs.clone()),
            Stage::Lookup(lookup) => lookup.keep(needs.clone()),
            _ => {}
        }
        is_changed |= matches!(stage, Stage::Unwind(_) | Stage::Lookup(_)) && needs != Needs::Whole;
        needs = stage.needs(needs);
    }
    is_changed
}
