//! The stages of a pipeline as a client has sent them, not yet checked.

use bson::{RawArray, RawBsonRef};

use crate::failure::{Code, Failure, Result};

/// Returns the name and the argument of the first stage; `None` if there is none or it is not a document. Only its first field is read: the library
/// refuses others.
///
/// # Errors
/// Fails on damaged bytes.
pub(crate) fn first(stages: &RawArray) -> Result<Option<(&str, RawBsonRef<'_>)>> {
    stages.into_iter().next().transpose()?.map_or(Ok(None), known_by)
}

/// Calls `visit` with the name and the argument of each stage, including the stages of nested pipelines.
///
/// # Errors
/// Fails as `visit` does, on damaged bytes, and with `Overflow` (15) if the pipelines are nested too deeply: the depth of the command was not checked
/// before.
pub(crate) fn visit<'p>(stages: &'p RawArray, visit: &mut Visit<'_, 'p>) -> Result<()> {
    visit_within(stages, MAX_DEPTH, visit)
}

type Visit<'v, 'p> = dyn FnMut(&'p str, RawBsonRef<'p>) -> Result<()> + 'v;

/// Maximum nesting of pipelines: more than a document of 180 levels can contain, which is the deepest that is executed.
const MAX_DEPTH: usize = 60;

fn visit_within<'p>(stages: &'p RawArray, depth: usize, visit: &mut Visit<'_, 'p>) -> Result<()> {
    let Some(left) = depth.checked_sub(1) else {
        return Err(Failure::new(Code(15, "Overflow"), format!("pipelines may nest at most {MAX_DEPTH} deep")));
    };
    for stage in stages {
        for element in stage?.as_document().into_iter().flatten() {
            let (name, argument) = element?;
            visit(name.as_str(), argument)?;
            for option in argument.as_document().into_iter().flatten() {
                let (option, value) = option?;
                let is_pipeline = match name.as_str() {
                    "$facet" => true,
                    "$graphLookup" | "$lookup" | "$unionWith" => option == "pipeline",
                    "$merge" => option == "whenMatched",
                    _ => false,
                };
                if let Some(inner) = value.as_array().filter(|_| is_pipeline) {
                    visit_within(inner, left, visit)?;
                }
            }
        }
    }
    Ok(())
}

fn known_by(stage: RawBsonRef<'_>) -> Result<Option<(&str, RawBsonRef<'_>)>> {
    let Some(element) = stage.as_document().and_then(|stage| stage.into_iter().next()) else { return Ok(None) };
    let (name, argument) = element?;
    Ok(Some((name.as_str(), argument)))
}
