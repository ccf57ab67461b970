use bson::RawDocumentBuf;
use slate_query::{Code, raw::Value};

use super::{
    call::Call,
    common::Common,
    concern::Concerns,
    fields::{Fields, missing, owned},
    hint,
    reply::Reply,
};
use crate::{
    Error, Explain, ExplainVerbosity, Result, api::aggregate::NO_COLLECTION, operation::handle::DatabaseHandle,
    operation::request::Request, operation::scope::Scope,
};

/// A parsed `aggregate`.
struct Aggregate<'c> {
    collection: &'c str,
    common: Common,
    request: Request,
}

/// `{aggregate: collection, pipeline, cursor, hint, …}`.
pub(super) fn run(database: &DatabaseHandle, call: Call<'_>) -> Result<RawDocumentBuf> {
    let aggregate = parse(call, Cursor::Required)?;
    let request = &aggregate.request;
    let scope = Scope::Database(database.clone());
    let mut rows = request.aggregate(&scope, aggregate.collection)?;
    let mut reply = Reply::default();
    reply.cursor(&aggregate.common.namespace(aggregate.collection), |batch, name| {
        let more = rows.advance()?;
        if let Some(row) = rows.current().filter(|_| more) {
            batch.document(name, row);
        }
        Ok(more)
    })?;
    reply.finish()
}

/// The plan of an `aggregate`.
pub(super) fn explain(
    database: &DatabaseHandle,
    call: Call<'_>,
    verbosity: ExplainVerbosity,
) -> Result<(Common, Explain)> {
    let aggregate = parse(call, Cursor::Optional)?;
    let scope = Scope::Database(database.clone());
    let explain = aggregate.request.resolved(|request| {
        let (query, _) = request.parse_aggregate()?;
        scope.explain(aggregate.collection, &query, verbosity, &request.interrupt)
    })?;
    Ok((aggregate.common, explain))
}

/// Whether the command must have the field `cursor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cursor {
    Required,
    Optional,
}

fn parse(mut call: Call<'_>, cursor: Cursor) -> Result<Aggregate<'_>> {
    let collection = collection(&call)?;
    let fields = &mut call.fields;
    let pipeline = pipeline(fields)?;
    let has_cursor = options(fields)?;
    let collated = fields.object_not_null("collation")?;
    let hint = hint::take(fields)?;
    let variables = fields.object_not_null("let")?;
    let disk_use = fields.boolean_not_null("allowDiskUse")?;
    let is_bypassed = fields.boolean_not_null("bypassDocumentValidation")?.unwrap_or_default();
    fields.boolean_not_null("isMapReduceCommand")?;
    let explain = fields.boolean_not_null("explain")?.unwrap_or_default();
    let common = Common::take(fields, Concerns::Read)?;
    call.fields.finish()?;
    if explain {
        return Err(Error::unsupported_by_name("explain in aggregate").at("explain"));
    }
    if !has_cursor && cursor == Cursor::Required {
        let message = "The 'cursor' option is required, except for aggregate with the explain argument";
        return Err(Error::invalid(Code::FAILED_TO_PARSE, message).at("cursor"));
    }
    let mut request = Request::default();
    request.has_own_documents = collection.is_none();
    request.bypass_document_validation(is_bypassed);
    request.pipeline(pipeline);
    if let Some(variables) = variables {
        request.let_variables(owned(variables)?);
    }
    if let Some(collation) = collated {
        request.collation(owned(collation)?);
    }
    request.hint = hint;
    request.allow_disk_use(disk_use.unwrap_or(true));
    request.interrupt = common.interrupt.clone();
    Ok(Aggregate { collection: collection.unwrap_or(NO_COLLECTION), common, request })
}

/// The collection's name; `None` for the number 1.
fn collection<'c>(call: &Call<'c>) -> Result<Option<&'c str>> {
    if call.target.as_str().is_none() && super::number::to_i64(call.target) == Some(1) {
        return Ok(None);
    }
    call.collection().map(Some)
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
        super::fields::owned(stage)
    };
    stages.values().map(stage).collect()
}

/// Takes `cursor` and returns whether it is present. Every reply contains all documents, whatever the batch size.
fn options(fields: &mut Fields<'_>) -> Result<bool> {
    let Some(cursor) = fields.any("cursor") else { return Ok(false) };
    let cursor = cursor
        .as_document()
        .ok_or_else(|| Error::invalid(Code::TYPE_MISMATCH, "cursor field must be missing or an object").at("cursor"))?;
    let mut fields = Fields::read("cursor", cursor)?;
    fields.size("batchSize")?;
    fields.finish()?;
    Ok(true)
}
