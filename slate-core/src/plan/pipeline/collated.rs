use slate_query::{pattern::Direction, sort::Sort};

use super::DocumentNode;
use crate::{
    Error, Result,
    plan::{Output, Query, Stage, sort_by_id},
};

/// Sorts by a collation in the document tier, since no index has that order. The window and the projection follow the sort.
///
/// # Errors
/// `NotImplemented` for a positional projection, whose position is not known behind a sort.
pub(crate) fn sort_by_collation(query: &mut Query) -> Result<()> {
    if !query.sort.as_ref().is_some_and(Sort::is_collated) {
        return Ok(());
    }
    let Some(sort) = query.sort.take() else { return Ok(()) };
    // Documents that are equal under the sort stay in this order, whatever the plan.
    query.sort = Some(sort_by_id(Direction::Ascending)?);
    let projection = match std::mem::replace(&mut query.output, Output::Whole) {
        Output::Whole => None,
        Output::Project { projection, .. } if projection.needs_position() => {
            return Err(Error::unsupported_by_name("a positional projection of a sort by a collation").at("collation"));
        }
        Output::Project { projection, document } => {
            Some(DocumentNode::Project { stage: Stage::Projection, projection, document })
        }
        output @ (Output::Fields(_) | Output::Count | Output::Distinct { .. }) => {
            query.output = output;
            return Ok(());
        }
    };
    let window = query.window();
    (query.skip, query.limit) = (0, None);
    let slice = (!window.is_all()).then_some(DocumentNode::Slice(window));
    query.pipeline.nodes.push(DocumentNode::Sort { sort, limit: window.reach() });
    query.pipeline.nodes.extend(slice.into_iter().chain(projection));
    Ok(())
}
