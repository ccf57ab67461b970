use bson::RawDocumentBuf;
use slate_query::{
    Code,
    number::Number,
    raw::{Doc, Value},
    sink::Sink,
};

use super::{
    call::Call,
    change_stream,
    concern::Concerns,
    cursor::{CursorOptions, FIRST_BATCH},
    explain::{self, Purpose, Verbosity},
    fields::{Fields, given, missing, owned},
    hint,
    read::ReadCommand,
};
use crate::{
    Error, Result,
    api::aggregate::NO_COLLECTION,
    call::{Request, RequestSource},
};

/// `{aggregate: collection, pipeline, cursor, hint, …}`: the first batch of the results, or of a change stream.
pub(super) fn run(call: Call<'_>) -> Result<RawDocumentBuf> {
    if call.fields.peek("explain").and_then(|explain| explain.as_bool()) == Some(true) {
        return explain(call, Verbosity::Planner);
    }
    let (aggregate, cursor) = parse(call, CursorField::Required)?;
    if change_stream::argument(aggregate.request.stages()).is_some() {
        return change_stream::run(&aggregate, cursor);
    }
    let rows = aggregate.request.aggregate(aggregate.at.scope, aggregate.collection)?;
    aggregate.reply(rows, cursor)
}

/// Replies with the plan of an `aggregate`.
pub(super) fn explain(call: Call<'_>, verbosity: Verbosity) -> Result<RawDocumentBuf> {
    if call.fields.peek("writeConcern").is_some() {
        let message = "Aggregation explain does not support the 'writeConcern' option";
        return Err(Error::invalid(Code::FAILED_TO_PARSE, message).at("writeConcern"));
    }
    let (command, collection) = (call.at.command, call.target.as_str().unwrap_or_default().to_owned());
    let (aggregate, _) = parse(call, CursorField::Optional)?;
    if change_stream::argument(aggregate.request.stages()).is_some() {
        change_stream::open(&aggregate)?;
        return explain::report_stages(command, aggregate.request.stages());
    }
    let explained = aggregate.explain(verbosity.into(), Purpose::Return, Request::parse_pipeline)?;
    explain::report(command, &collection, &explained, verbosity)
}

/// Whether the command must have the field `cursor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CursorField {
    Required,
    Optional,
}

fn parse(mut call: Call<'_>, field: CursorField) -> Result<(ReadCommand<'_>, CursorOptions)> {
    let collection = collection(&call)?;
    let fields = &mut call.fields;
    let pipeline = pipeline(fields)?;
    let cursor = take_cursor(fields)?;
    let collated = fields.object_not_null("collation")?;
    let hint = hint::take(fields)?;
    let variables = fields.object("let")?;
    let disk_use = fields.boolean_not_null("allowDiskUse")?;
    let is_bypassed = fields.boolean_not_null("bypassDocumentValidation")?.unwrap_or_default();
    fields.boolean_not_null("isMapReduceCommand")?;
    fields.boolean_not_null("explain")?;
    let concerns = match change_stream::argument(&pipeline) {
        Some(_) => Concerns::Majority,
        None if pipeline.last().is_some_and(|last| Sink::is(Doc::from(last))) => Concerns::ReadAndWrite,
        None => Concerns::Pipeline,
    };
    let common = call.common(concerns)?;
    call.fields.finish()?;
    if cursor.is_none() && field == CursorField::Required {
        let message = "The 'cursor' option is required, except for aggregate with the explain argument";
        return Err(Error::invalid(Code::FAILED_TO_PARSE, message).at("cursor"));
    }
    let mut request = Request::default();
    if collection.is_none() {
        request.source = RequestSource::Pipeline;
    }
    request.call.bypass_document_validation(is_bypassed);
    request.pipeline(pipeline);
    given(variables, |variables| request.let_variables(variables))?;
    given(collated, |collation| request.collation(collation))?;
    request.hint = hint;
    request.call.allow_disk_use(disk_use.unwrap_or(true));
    let cursor = CursorOptions::in_batches(Some(cursor.flatten().unwrap_or(FIRST_BATCH)));
    Ok((ReadCommand::new(call.at, collection.unwrap_or(NO_COLLECTION), request, common), cursor))
}

/// Returns the collection's name; `None` for the number 1, which stands for no collection.
fn collection<'c>(call: &Call<'c>) -> Result<Option<&'c str>> {
    let Some(number) = Number::of(call.target) else { return call.collection().map(Some) };
    if number == Number::Int32(1) {
        return Ok(None);
    }
    let message = "the 'aggregate' field must specify a collection name or 1";
    Err(Error::invalid(Code::FAILED_TO_PARSE, message).at(call.name))
}

fn pipeline(fields: &mut Fields<'_>) -> Result<Vec<RawDocumentBuf>> {
    let stages = fields.any("pipeline").ok_or_else(|| missing("aggregate", "pipeline"))?;
    let stages = stages.as_array().ok_or_else(|| {
        let message = "'pipeline' option must be specified as an array";
        Error::invalid(Code::TYPE_MISMATCH, message).at("pipeline")
    })?;
    let stage = |stage: Value<'_>| {
        let message = "Each element of the 'pipeline' array must be an object";
        let stage = stage.as_document().ok_or_else(|| Error::invalid(Code::TYPE_MISMATCH, message).at("pipeline"))?;
        owned(stage)
    };
    stages.values().map(stage).collect()
}

/// Reads `cursor`: `None` if it is missing, `Some(None)` if it has no batch size.
pub(super) fn take_cursor(fields: &mut Fields<'_>) -> Result<Option<Option<u64>>> {
    let Some(cursor) = fields.any("cursor") else { return Ok(None) };
    let cursor = cursor
        .as_document()
        .ok_or_else(|| Error::invalid(Code::TYPE_MISMATCH, "cursor field must be missing or an object").at("cursor"))?;
    batch_size(cursor).map(Some)
}

/// Returns the `batchSize` of a command's `cursor` document; `None` if it has none.
pub(super) fn batch_size(cursor: Doc<'_>) -> Result<Option<u64>> {
    let mut fields = Fields::read("cursor", cursor)?;
    let batch = fields.size("batchSize")?;
    fields.finish()?;
    Ok(batch)
}
