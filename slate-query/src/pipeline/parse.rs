use super::{Stage, stages};
use crate::expression::Bindings;
use crate::{Code, Error, Result, raw::Value};

/// The most stages of a pipeline, MongoDB's limit: it bounds how deeply executors are nested.
const MAX_STAGES: usize = 1_000;

/// Parses the stages of a pipeline, each given as `{ $name: argument }`. An error has the stage's name as its path, or
/// the path within it.
///
/// # Errors
/// MongoDB's codes: `TypeMismatch` (14) for a stage that is not a document, 40323 for one that has not exactly one field,
/// 40324 for an unknown name, 7749501 for more than 1,000 stages, and those of the stages; `NotImplemented` (238) for
/// stages that Slate does not offer.
pub fn parse<'a>(pipeline: impl IntoIterator<Item = Value<'a>>, bindings: &Bindings) -> Result<Vec<Stage>> {
    let mut parsed = Vec::new();
    for (place, stage) in pipeline.into_iter().enumerate() {
        if place == MAX_STAGES {
            let message = format!("a pipeline has at most {MAX_STAGES} stages");
            return Err(Error::new(Code(7_749_501), message));
        }
        let Some(stage) = stage.as_document() else {
            let message = "Each element of the 'pipeline' array must be an object";
            return Err(Error::new(Code::TYPE_MISMATCH, message).at(format!("pipeline.{place}")));
        };
        let mut elements = stage.elements();
        let (Some(only), None) = (elements.next(), elements.next()) else {
            let message = "A pipeline stage specification object must contain exactly one field.";
            return Err(Error::new(Code(40_323), message).at(format!("pipeline.{place}")));
        };
        let name = only.display_name();
        let stages = stages::parse(&name, only.value, bindings).map_err(|error| error.at(&*name))?;
        if place > 0 && stages.first().is_some_and(Stage::is_source) {
            return Err(not_first(&name));
        }
        parsed.extend(stages);
    }
    Ok(parsed)
}

/// Checks the name of a collection that a stage names.
///
/// # Errors
/// `InvalidNamespace` (73).
pub(crate) fn check_collection(name: &str) -> Result<()> {
    // A collection outside of the default database is stored as `$database.collection`.
    let name = name.strip_prefix('$').and_then(|full| full.split_once('.')).map_or(name, |(_, own)| own);
    let fault = if name.is_empty() {
        "must not be empty"
    } else if name.starts_with('.') {
        "must not begin with a dot"
    } else if name.contains(['$', '\0']) {
        "must not contain '$' or NUL"
    } else {
        return Ok(());
    };
    Err(Error::new(Code::INVALID_NAMESPACE, format!("the name of a collection {fault}: {name:?}")))
}

/// Returns the error for a stage that is not the first of its pipeline, but [must be](Stage::is_source).
pub fn not_first(stage: &str) -> Error {
    Error::new(stages::NOT_FIRST, format!("{stage} is only valid as the first stage in a pipeline")).at(stage)
}
