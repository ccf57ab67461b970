//! Moves a `$skip` or `$limit` before a stage that returns one document for each of its input, so that the stage is not
//! executed on the documents that are dropped, and a `$sort` before it holds fewer rows.

use slate_query::pipeline::Stage;

pub(super) fn apply(stages: &mut [Stage]) -> bool {
    super::move_earlier(stages, |stage, before| {
        matches!(stage, Stage::Skip(_) | Stage::Limit(_)) && before.is_one_to_one()
    })
}
