//! Updates given as pipelines: each stage returns a new document.

use super::{Context, replace};
use crate::{
    Code, Error, Result,
    expression::Bindings,
    path::Path,
    pipeline::{self, Stage},
    raw::Doc,
};

/// The stages that MongoDB allows in an update.
const STAGES: [&str; 6] = ["$addFields", "$project", "$replaceRoot", "$replaceWith", "$set", "$unset"];

/// The parsed stages.
#[derive(Debug)]
pub(super) struct Pipeline(Vec<Stage>);

impl Pipeline {
    pub(super) fn parse(stages: Doc<'_>, bindings: &Bindings) -> Result<Self> {
        for stage in stages.values().filter_map(|stage| stage.as_document()) {
            let name = stage.elements().next().map(|first| first.display_name().into_owned()).unwrap_or_default();
            if pipeline::is_stage(&name) && !STAGES.contains(&&*name) {
                let message = format!("the stage {name} is not allowed within an update");
                return Err(Error::new(Code::INVALID_OPTIONS, message).at(name));
            }
        }
        // MongoDB computes constants before the first document in queries and pipelines, but not in updates.
        pipeline::parse(stages.values(), &bindings.clone().lenient()).map(Self)
    }

    /// Returns the new document, which has the old `_id` even if a stage leaves it out; `None` if nothing changes.
    pub(super) fn apply(&self, old: Doc<'_>, context: &Context) -> Result<Option<Vec<u8>>> {
        let (mut document, mut next) = (old.bytes().to_vec(), Vec::new());
        for stage in &self.0 {
            match stage {
                Stage::Project { projection, .. } => projection.apply(Doc::new(&document), None, &mut next)?,
                Stage::ReplaceRoot(replace) => replace.apply(Doc::new(&document), &mut next)?,
                // `parse` admits no other stage.
                _ => continue,
            }
            std::mem::swap(&mut document, &mut next);
        }
        replace::replace(old, Doc::new(&document), replace::NewDocument::Pipeline, context)
    }

    /// Returns whether a stage may change the value at the path; `false` only if each provably preserves it.
    pub(super) fn touches(&self, path: &Path) -> bool {
        !self.0.iter().all(|stage| stage.preserves(path))
    }
}
