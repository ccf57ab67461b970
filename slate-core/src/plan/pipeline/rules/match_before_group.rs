//! Moves the conditions of a `$match` on the `_id` of a preceding `$group` before the group, if the groups are the values of
//! one field. The same groups remain, and an index can serve the conditions.

use slate_query::{path::Path, pipeline::Stage};

pub(super) fn apply(stages: &mut Vec<Stage>) -> bool {
    let Ok(id) = Path::parse("_id") else { return false };
    let mut is_changed = false;
    let mut rewritten: Vec<Stage> = Vec::with_capacity(stages.len());
    for stage in stages.drain(..) {
        let key = match (&stage, rewritten.last()) {
            (Stage::Match(_), Some(Stage::Group(group))) => group.key_field(),
            _ => None,
        };
        let (Stage::Match(filter), Some(key)) = (&stage, key) else {
            rewritten.push(stage);
            continue;
        };
        let (moved, rest) = filter.split_at(&id, &key);
        if let Some(moved) = moved {
            rewritten.insert(rewritten.len() - 1, Stage::Match(moved));
            is_changed = true;
        }
        rewritten.extend(rest.map(Stage::Match));
    }
    *stages = rewritten;
    is_changed
}
