//! MongoDB's stable API: a client declares `apiVersion: "1"`. With `apiStrict: true` it may only use commands, stages and arguments of that version.

use bson::{RawBsonRef, RawDocument};

use crate::{
    command::Command,
    commands::{self, Trait},
    failure::{Code, Failure, Result},
    stages,
};

/// Stages outside of version 1, sorted.
const STAGES: [&str; 6] =
    ["$currentOp", "$indexStats", "$listLocalSessions", "$listSearchIndexes", "$listSessions", "$planCacheStats"];

/// Arguments outside of version 1, whatever their values, by command.
const ARGUMENTS: [(&str, &[&str]); 2] = [
    ("aggregate", &["collectionUUID", "explain", "isMapReduceCommand", "runtimeConstants"]),
    (
        "find",
        &[
            "$_requestResumeToken",
            "$_resumeAfter",
            "awaitData",
            "max",
            "min",
            "noCursorTimeout",
            "oplogReplay",
            "readOnce",
            "returnKey",
            "showRecordId",
            "tailable",
        ],
    ),
];

/// Checks the fields of the stable API in a command. An unknown command fails as such.
///
/// # Errors
/// Fails with `APIVersionError` (322), with `APIStrictError` (323), or with 4886600 for options without a version.
pub(crate) fn check(command: &Command) -> Result<()> {
    if !command.declares_api || command.known.is_none() {
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
            return Err(Failure::located(4_886_600, message));
        }
    }
    if !is_strict {
        return Ok(());
    }
    check_strict(command.document())?;
    let explained = command.get("explain")?.filter(|_| command.name == "explain").and_then(RawBsonRef::as_document);
    explained.map_or(Ok(()), check_strict)
}

/// Checks a command, or the command within an `explain`. An unknown one fails as such.
fn check_strict(command: &RawDocument) -> Result<()> {
    let outside = |what: String| {
        let message = format!("Provided apiStrict:true, but {what} is not in API Version 1");
        Err(Failure::new(Code(323, "APIStrictError"), message))
    };
    let Some(first) = command.iter().next() else { return Ok(()) };
    let name = first?.0.as_str();
    if commands::find(name).is_some_and(|known| !known.is(Trait::Stable)) {
        return outside(format!("the command {name}"));
    }
    for (_, arguments) in ARGUMENTS.iter().filter(|(known, _)| *known == name) {
        for argument in *arguments {
            if command.get(argument)?.is_some() {
                return outside(format!("the argument {name}.{argument}"));
            }
        }
    }
    // The pipeline of an `aggregate`, or of a view.
    let Some(stages) = command.get("pipeline")?.and_then(RawBsonRef::as_array) else { return Ok(()) };
    stages::visit(stages, &mut |name, argument| {
        if STAGES.binary_search(&name).is_ok() {
            return outside(format!("stage {name}"));
        }
        let mut options = argument.as_document().into_iter().flatten().flatten().filter(|_| name == "$collStats");
        match options.find(|(option, _)| option.as_str() != "count") {
            Some((option, _)) => outside(format!("the option {option} of $collStats")),
            None => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(STAGES.is_sorted());
    }
}
