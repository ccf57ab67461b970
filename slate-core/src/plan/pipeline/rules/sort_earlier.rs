//! Moves a `$sort` before a `$project` or `$addFields` that does not change its fields. Every document has the same sort key before and
//! after it; at the start of the pipeline an index can provide the order.

use slate_query::pipeline::Stage;

pub(super) fn apply(stages: &mut [Stage]) -> bool {
    super::move_earlier(stages, |stage, before| match stage {
        Stage::Sort(sort) => before.can_follow_sort(sort),
        _ => false,
    })
}
