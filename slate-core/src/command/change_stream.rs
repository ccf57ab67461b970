//! `$changeStream`, the first stage of an aggregation.

use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Doc, Kind, Value},
};

use super::{
    common::Common,
    cursor::{CommandCursor, CursorOptions},
    fields::Fields,
    read::ReadCommand,
    reply::Reply,
};
use crate::{
    CancelToken, Error, FullDocument, FullDocumentBeforeChange, Result,
    api::aggregate::NO_COLLECTION,
    call::change_stream::{ChangeStreamState, StreamSpec, StreamStart, parse_stages},
    changes::{Expanded, Token, Watched},
    namespace,
};

/// Returns the argument of `$changeStream`, if a pipeline begins with it.
pub(super) fn argument(pipeline: &[RawDocumentBuf]) -> Option<Value<'_>> {
    let first = pipeline.first().map(Doc::from)?.elements().next()?;
    (first.name == b"$changeStream").then_some(first.value)
}

/// Opens the stream of an `aggregate`, and replies with its first batch.
pub(super) fn run(aggregate: &ReadCommand<'_>, options: CursorOptions) -> Result<RawDocumentBuf> {
    let state = open(aggregate)?;
    let (at, common) = (aggregate.at, &aggregate.common);
    if at.cursors.is_none() {
        let message = "a change stream needs cursors: use Database::commands";
        return Err(Error::invalid(Code::CURSOR_NOT_FOUND, message).at("$changeStream"));
    }
    let namespace = common.full_name(aggregate.collection);
    let kill = at.running.token.map_or_else(CancelToken::new, CancelToken::child);
    let cursor = CommandCursor::of_changes(Box::new(state), namespace, common, kill);
    let mut reply = Reply::default();
    at.first_batch(&mut reply, cursor, options)?;
    reply.finish()
}

/// Returns the collection that the stream watches; `None` for a database.
fn collection<'c>(aggregate: &ReadCommand<'c>) -> Option<&'c str> {
    (aggregate.collection != NO_COLLECTION).then_some(aggregate.collection)
}

/// Opens the stream that the pipeline of an `aggregate` describes.
pub(super) fn open(aggregate: &ReadCommand<'_>) -> Result<ChangeStreamState> {
    let ReadCommand { at, request, common, .. } = aggregate;
    request.check()?;
    let pipeline = request.stages();
    let argument = argument(pipeline).unwrap_or(Value::NULL);
    let argument = argument.as_document().ok_or_else(|| {
        let message = "the $changeStream stage must be specified as an object";
        Error::invalid(Code(50_808), message).at("$changeStream")
    })?;
    let mut fields = Fields::read("$changeStream", argument)?;
    let all_databases = fields.truth("allChangesForCluster")?.unwrap_or_default();
    let full_document = one_of(
        &mut fields,
        "fullDocument",
        &[
            ("default", FullDocument::Default),
            ("updateLookup", FullDocument::UpdateLookup),
            ("whenAvailable", FullDocument::WhenAvailable),
            ("required", FullDocument::Required),
        ],
    )?;
    let before = one_of(
        &mut fields,
        "fullDocumentBeforeChange",
        &[
            ("off", FullDocumentBeforeChange::Off),
            ("whenAvailable", FullDocumentBeforeChange::WhenAvailable),
            ("required", FullDocumentBeforeChange::Required),
        ],
    )?;
    let expanded = if fields.truth("showExpandedEvents")?.unwrap_or_default() { Expanded::Yes } else { Expanded::No };
    let start = start(&mut fields)?;
    for ignored in
        ["showMigrationEvents", "showSystemEvents", "showRawUpdateDescription", "matchCollectionUUIDForUpdateLookup"]
    {
        fields.truth(ignored)?;
    }
    fields.finish()?;
    let watched = watched(collection(aggregate), common, all_databases)?;
    let stages = pipeline.iter().skip(1).map(|stage| Value::new(Kind::Document, stage.as_bytes()));
    let bindings = request.stream_bindings()?;
    let (stages, splits) = common.call.during(|| parse_stages(stages, &bindings))?;
    let spec = StreamSpec { watched, start, full_document, before, expanded, stages, splits };
    ChangeStreamState::open(at.scope.database("a change stream")?, spec, &common.call)
}

fn watched(collection: Option<&str>, common: &Common, all_databases: bool) -> Result<Watched> {
    match collection {
        Some(_) if all_databases => {
            let message = "$changeStream may only be opened on the 'admin' database with allChangesForCluster, and \
                           without a collection";
            Err(Error::invalid(Code::INVALID_OPTIONS, message).at("allChangesForCluster"))
        }
        Some(name) => Ok(Watched::Collection(name.into())),
        None if all_databases && common.database == "admin" => Ok(Watched::Store),
        None if all_databases => {
            let message = "A $changeStream with 'allChangesForCluster:true' may only be opened on the 'admin' database";
            Err(Error::invalid(Code::INVALID_OPTIONS, message).at("allChangesForCluster"))
        }
        None if matches!(&*common.database, "admin" | "config" | "local") => {
            let message = format!("$changeStream may not be opened on the internal {} database", common.database);
            Err(Error::invalid(Code::INVALID_NAMESPACE, message))
        }
        None => Ok(Watched::Database(common.database.as_str().into())),
    }
    .and_then(|watched| match &watched {
        Watched::Collection(name) if matches!(namespace::split(name).0, "admin" | "config" | "local") => {
            let message = "$changeStream may not be opened on a collection of an internal database";
            Err(Error::invalid(Code::INVALID_NAMESPACE, message))
        }
        _ => Ok(watched),
    })
}

/// Reads the start of the stream: `resumeAfter`, `startAfter` or `startAtOperationTime`.
fn start(fields: &mut Fields<'_>) -> Result<StreamStart> {
    let resume = fields.object_not_null("resumeAfter")?.map(Token::read).transpose()?;
    let after = fields.object_not_null("startAfter")?.map(Token::read).transpose()?;
    let at = match fields.value("startAtOperationTime") {
        Some(time) => {
            Some(time.as_timestamp().ok_or_else(|| fields.mistyped("startAtOperationTime", time, "timestamp"))?)
        }
        None => None,
    };
    match (resume, after, at) {
        (None, None, None) => Ok(StreamStart::Now),
        (Some(token), None, None) => Ok(StreamStart::ResumeAfter(token)),
        (None, Some(token), None) => Ok(StreamStart::StartAfter(token)),
        (None, None, Some(stamp)) => Ok(StreamStart::At(stamp)),
        (Some(_), Some(_), _) => {
            let message = "Do not specify both 'resumeAfter' and 'startAfter' in a $changeStream stage";
            Err(Error::invalid(Code(50_865), message).at("startAfter"))
        }
        (_, _, Some(_)) => {
            let message = "Only one type of resume option is allowed, but multiple were found.";
            Err(Error::invalid(Code(40_674), message).at("startAtOperationTime"))
        }
    }
}

/// Reads a field whose value must be one of `words`. `T::default()` if it is missing.
fn one_of<T: Copy + Default>(fields: &mut Fields<'_>, name: &str, words: &[(&str, T)]) -> Result<T> {
    let Some(word) = fields.string(name)? else { return Ok(T::default()) };
    words.iter().find(|(known, _)| *known == word).map(|(_, value)| *value).ok_or_else(|| {
        let message = format!("Enumeration value '{word}' for field '$changeStream.{name}' is not a valid value.");
        Error::invalid(Code::BAD_VALUE, message).at(name)
    })
}
