//! MongoDB's stable API: a client declares `apiVersion: "1"`. With `apiStrict: true` it may only use commands and stages of that version.

use bson::RawBsonRef;

use crate::{
    command::Command,
    commands::Trait,
    failure::{Code, Failure, Result},
};

/// Stages outside of version 1, sorted.
const STAGES: [&str; 6] =
    ["$currentOp", "$indexStats", "$listLocalSessions", "$listSearchIndexes", "$listSessions", "$planCacheStats"];

/// Checks the fields of the stable API in a command.
///
/// # Errors
/// `APIVersionError` (322), `APIStrictError` (323), `InvalidOptions` (72) for options without a version.
pub(crate) fn check(command: &Command) -> Result<()> {
    if !command.declares_api {
        return Ok(());
    }
    let truth = |name: &str| -> Result<bool> {
        let Some(value) = command.get(name)? else { return Ok(false) };
        value.as_bool().ok_or_else(|| Failure::mistyped(name, "bool"))
    };
    let is_strict = truth("apiStrict")?;
    truth("apiDeprecationErrors")?;
    match command.get("apiVersion")? {
        Some(RawBsonRef::String("1")) => {}
        Some(RawBsonRef::String(_)) => {
            return Err(Failure::new(Code(322, "APIVersionError"), "API version must be \"1\""));
        }
        Some(_) => return Err(Failure::mistyped("apiVersion", "string")),
        None => {
            let message = "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion";
            return Err(Failure::new(Code::INVALID_OPTIONS, message));
        }
    }
    let strict =
        |what: String| Failure::new(Code(323, "APIStrictError"), format!("Provided apiStrict:true, but {what}"));
    if is_strict && !command.is(Trait::Stable) {
        return Err(strict(format!("the command {} is not in API Version 1", command.name)));
    }
    let stages = command.get("pipeline")?.filter(|_| is_strict && command.name == "aggregate");
    for stage in stages.and_then(RawBsonRef::as_array).into_iter().flatten() {
        let name = stage?.as_document().and_then(|stage| Some(stage.iter().next()?.ok()?.0.as_str()));
        if let Some(name) = name.filter(|name| STAGES.binary_search(name).is_ok()) {
            return Err(strict(format!("stage {name} is not in API Version 1")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(STAGES.is_sorted());
    }
}
