//! Moves the conditions of a `$match` on the `_id` of a preceding `$group` before the group. The `_id` must be the value
//! of one field, or the conditions must be on a field of the `_id` that is the value of a document's field. The same
//! groups remain, and an index can serve the conditions.

use slate_query::pipeline::Stage;

pub(super) fn apply(stages: &mut Vec<Stage>) -> bool {
    let mut is_changed = false;
    let mut rewritten: Vec<Stage> = Vec::with_capacity(stages.len());
    for stage in stages.drain(..) {
        let keys = match (&stage, rewritten.last()) {
            (Stage::Match(_), Some(Stage::Group(group))) => group.key_fields(),
            _ => Vec::new(),
        };
        let Stage::Match(filter) = stage else {
            rewritten.push(stage);
            continue;
        };
        let mut left = Some(filter);
        for (id, field) in keys {
            let Some((moved, rest)) = left.as_ref().map(|filter| filter.split_at(&id, &field)) else { break };
            if let Some(moved) = moved {
                rewritten.insert(rewritten.len() - 1, Stage::Match(moved));
                is_changed = true;
                left = rest;
            }
        }
        rewritten.extend(left.map(Stage::Match));
    }
    *stages = rewritten;
    is_changed
}
