//! Merges a stage with the one before it, so that documents pass through one stage less: two `$match`, two `$addFields` of different
//! fields, a `$sort` after another one, and a `$project` that shows some of the fields that another one shows.

use slate_query::pipeline::Stage;

pub(super) fn apply(stages: &mut Vec<Stage>) -> bool {
    let before = stages.len();
    let mut merged: Vec<Stage> = Vec::with_capacity(before);
    for stage in stages.drain(..) {
        match merged.last_mut() {
            Some(last) => match last.merged(&stage) {
                Some(both) => *last = both,
                None => merged.push(stage),
            },
            None => merged.push(stage),
        }
    }
    *stages = merged;
    stages.len() < before
}
