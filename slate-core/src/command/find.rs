use bson::{RawDocumentBuf, cstr, rawdoc};
use slate_query::{Code, raw::Doc};

use super::{
    call::Call,
    concern::Concerns,
    cursor::{CursorOptions, FIRST_BATCH},
    explain::{ExplainedCommand, Purpose},
    fields::{Fields, given, owned},
    hint,
    read::ReadCommand,
};
use crate::{
    Error, ExplainVerbosity, Result,
    call::{FindArguments, FindResult, Request},
};

/// `{find: collection, filter, projection, sort, hint, skip, limit, …}`: the first batch of the matching documents.
pub(super) fn run(call: Call<'_>) -> Result<RawDocumentBuf> {
    let (find, cursor) = parse(call)?;
    let rows = find.request.find(find.at.scope, find.collection)?;
    find.reply(rows, cursor)
}

/// Returns the plan of a `find`.
pub(super) fn explain(call: Call<'_>, verbosity: ExplainVerbosity) -> Result<ExplainedCommand> {
    parse(call)?.0.explain(verbosity, Purpose::Return, Request::parse_find)
}

fn parse(mut call: Call<'_>) -> Result<(ReadCommand<'_>, CursorOptions)> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let filter = fields.object_not_null("filter")?;
    let projection = fields.object_not_null("projection")?;
    let sort = fields.object_not_null("sort")?;
    let collated = fields.object_not_null("collation")?;
    let hint = hint::take(fields)?;
    let skip = fields.size("skip")?;
    let limit = fields.size("limit")?;
    let batch = fields.size("batchSize")?;
    let single = fields.boolean_not_null("singleBatch")?.unwrap_or_default();
    let disk_use = fields.boolean_not_null("allowDiskUse")?;
    fields.boolean_not_null("oplogReplay")?;
    let mut unlike_aggregate = (single && limit != Some(1)).then_some("singleBatch");
    let mut takes = |name| -> Result<bool> {
        let is_set = fields.boolean_not_null(name)?.unwrap_or_default();
        if is_set {
            unlike_aggregate.get_or_insert(name);
        }
        Ok(is_set)
    };
    let times_out = !takes("noCursorTimeout")?;
    takes("allowPartialResults")?;
    takes("readOnce")?;
    not_tailable(fields)?;
    let variables = fields.object("let")?;
    let min = fields.object_not_null("min")?.filter(|min| !min.is_empty());
    let max = fields.object_not_null("max")?.filter(|max| !max.is_empty());
    let returns_key = fields.boolean_not_null("returnKey")?.unwrap_or_default();
    let shows_record_id = fields.boolean_not_null("showRecordId")?.unwrap_or_default();
    if shows_record_id {
        unlike_aggregate.get_or_insert("showRecordId");
    }
    let refused = refused(fields)?;
    let common = call.common(Concerns::Read)?;
    call.fields.finish()?;
    if let Some(name) = refused {
        return Err(Error::unsupported_by_name(name).at(name));
    }

    let mut request = Request::new(filter.map(owned).transpose()?.unwrap_or_default());
    given(sort, |sort| request.sort(sort))?;
    let projection = projection.filter(|projection| !projection.is_empty()).map(owned).transpose()?;
    match projection {
        projection if shows_record_id => request.projection(with_record_id(projection.unwrap_or_default())),
        Some(projection) => request.projection(projection),
        None => {}
    }
    given(variables, |variables| request.let_variables(variables))?;
    given(collated, |collation| request.collation(collation))?;
    request.hint = hint;
    request.find = FindArguments {
        min: min.map(owned).transpose()?,
        max: max.map(owned).transpose()?,
        result: if returns_key { FindResult::Key } else { FindResult::Document },
        unlike_aggregate,
    };
    request.call.allow_disk_use(disk_use.unwrap_or(true));
    request.window.skip = skip.unwrap_or_default();
    request.window.limit = limit.filter(|&limit| limit > 0);
    let batch = batch.unwrap_or(FIRST_BATCH);
    if single {
        request.window.limit = Some(request.window.limit.map_or(batch, |limit| limit.min(batch)));
    }
    let cursor = CursorOptions { batch: Some(batch), limit: request.window.limit, is_single: single, times_out };
    Ok((ReadCommand::new(call.at, collection, request, common), cursor))
}

/// Adds the key of the record as the field `$recordId`, unless the projection names that field.
fn with_record_id(mut projection: RawDocumentBuf) -> RawDocumentBuf {
    if Doc::from(&projection).get("$recordId").is_none() {
        projection.append(cstr!("$recordId"), rawdoc! { "$meta": "recordId" });
    }
    projection
}

/// Fails if a tailable cursor is requested, which only capped collections have: Slate has none. Also fails for `awaitData` without `tailable`.
fn not_tailable(fields: &mut Fields<'_>) -> Result<()> {
    let tailable = fields.boolean_not_null("tailable")?.unwrap_or_default();
    let awaits = fields.boolean_not_null("awaitData")?.unwrap_or_default();
    match (tailable, awaits) {
        (true, _) => {
            let message = "tailable cursor requested on non capped collection";
            Err(Error::invalid(Code::BAD_VALUE, message).at("tailable"))
        }
        (false, true) => {
            let message = "Cannot set 'awaitData' without also setting 'tailable'";
            Err(Error::invalid(Code::FAILED_TO_PARSE, message).at("awaitData"))
        }
        (false, false) => Ok(()),
    }
}

/// Reads arguments that Slate does not support. Returns the name of one whose value would have an effect; `None` if there is none.
fn refused(fields: &mut Fields<'_>) -> Result<Option<&'static str>> {
    let mut refused = None;
    if fields.boolean_not_null("$_requestResumeToken")?.unwrap_or_default() {
        refused = Some("$_requestResumeToken");
    }
    if fields.object_not_null("$_resumeAfter")?.is_some_and(|token| !token.is_empty()) {
        refused.get_or_insert("$_resumeAfter");
    }
    Ok(refused)
}
