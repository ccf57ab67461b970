//! Removes the stages on which the result does not depend: a `$match` without conditions, `$skip: 0`, a `$sort` before a
//! `$count`, a `$project` or `$addFields` that cannot fail and does not change the fields that later stages read, and a
//! `$lookup` by an equality if no later stage reads its array.

use slate_query::{expression::Needs, pipeline::Stage};

pub(super) fn apply(stages: &mut Vec<Stage>) -> bool {
    let before = stages.len();
    let mut needs = Needs::Whole;
    let mut kept: Vec<Stage> = Vec::with_capacity(before);
    for stage in stages.drain(..).rev() {
        let is_counted = matches!(kept.last(), Some(Stage::Count(_)));
        if stage.is_unused(&needs) || (is_counted && matches!(stage, Stage::Sort(_))) {
            continue;
        }
        needs = stage.needs(needs);
        kept.push(stage);
    }
    kept.reverse();
    *stages = kept;
    stages.len() < before
}
