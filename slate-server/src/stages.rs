//! The stages of a pipeline as a client has sent them, not yet checked.

use bson::{RawArray, RawBsonRef};

use crate::failure::Result;

/// Returns the name and the argument of the first stage; `None` without stages. Only its first field is read: the library refuses others.
///
/// # Errors
/// Fails on damaged bytes.
pub(crate) fn first(stages: &RawArray) -> Result<Option<(&str, RawBsonRef<'_>)>> {
    stages.into_iter().next().transpose()?.map_or(Ok(None), known_by)
}

/// Returns the name of the first stage that is one of `names`, if there is any.
///
/// # Errors
/// Fails on damaged bytes.
pub(crate) fn any_of<'p>(stages: &'p RawArray, names: &[&str]) -> Result<Option<&'p str>> {
    for stage in stages {
        if let Some((name, _)) = known_by(stage?)?.filter(|(name, _)| names.contains(name)) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn known_by(stage: RawBsonRef<'_>) -> Result<Option<(&str, RawBsonRef<'_>)>> {
    let Some(element) = stage.as_document().and_then(|stage| stage.into_iter().next()) else { return Ok(None) };
    let (name, argument) = element?;
    Ok(Some((name.as_str(), argument)))
}
