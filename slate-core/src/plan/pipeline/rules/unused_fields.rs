//! Drops the fields that no later stage reads from the documents of an `$unwind`, a `$lookup` and a `$setWindowFields`, so that
//! they are not copied for each element, match or result, and from those of a `$group`, so that they are not computed.

use slate_query::{expression::Needs, pipeline::Stage};

pub(super) fn apply(stages: &mut [Stage]) -> bool {
    let (mut needs, mut is_changed) = (Needs::Whole, false);
    for stage in stages.iter_mut().rev() {
        match stage {
            Stage::Unwind(unwind) => unwind.keep(needs.clone()),
            Stage::Lookup(lookup) => lookup.keep(needs.clone()),
            Stage::SetWindowFields(windows) => windows.keep(&needs),
            Stage::Group(group) => is_changed |= group.keep(&needs),
            _ => {}
        }
        is_changed |=
            needs != Needs::Whole && matches!(stage, Stage::Unwind(_) | Stage::Lookup(_) | Stage::SetWindowFields(_));
        needs = stage.needs(needs);
    }
    is_changed
}
