//! Moves a `$match` before a `$project`, `$addFields` or `$unwind` that does not change the fields of its filter, and before a `$sort`.
//! The same documents pass, and fewer of them reach the other stage; at the start of the pipeline an index can serve it.

use slate_query::pipeline::Stage;

pub(super) fn apply(stages: &mut [Stage]) -> bool {
    super::move_earlier(stages, |stage, before| match stage {
        Stage::Match(filter) => before.can_follow_match(filter),
        _ => false,
    })
}
