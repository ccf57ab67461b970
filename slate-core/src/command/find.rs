use bson::RawDocumentBuf;
use slate_query::Code;

use super::{
    call::Call,
    common::Common,
    concern::Concerns,
    fields::{Fields, given, owned},
    hint,
    read::ReadCommand,
};
use crate::{
    Error, Explain, ExplainVerbosity, Result,
    operation::request::{FindResult, Request},
    operation::scope::{DatabaseHandle, Scope},
};

/// The number of documents in MongoDB's first batch if the command gives no size.
const FIRST_BATCH: u64 = 101;

/// `{find: collection, filter, projection, sort, hint, skip, limit, …}`.
pub(super) fn run(database: &DatabaseHandle, call: Call<'_>) -> Result<RawDocumentBuf> {
    let find = parse(call)?;
    find.reply(find.request.find(&Scope::Database(database.clone()), find.collection)?)
}

/// Returns the plan of a `find`.
pub(super) fn explain(
    database: &DatabaseHandle,
    call: Call<'_>,
    verbosity: ExplainVerbosity,
) -> Result<(Common, Explain)> {
    parse(call)?.explain(database, verbosity, Request::parse_find)
}

fn parse(mut call: Call<'_>) -> Result<ReadCommand<'_>> {
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
    for name in ["noCursorTimeout", "allowPartialResults", "readOnce"] {
        if fields.boolean_not_null(name)?.unwrap_or_default() {
            unlike_aggregate.get_or_insert(name);
        }
    }
    not_tailable(fields)?;
    let variables = fields.object("let")?;
    let min = fields.object_not_null("min")?.filter(|min| !min.is_empty());
    let max = fields.object_not_null("max")?.filter(|max| !max.is_empty());
    let returns_key = fields.boolean_not_null("returnKey")?.unwrap_or_default();
    let refused = refused(fields)?;
    let common = Common::take(fields, Concerns::Read)?;
    call.fields.finish()?;
    if let Some(name) = refused {
        return Err(Error::unsupported_by_name(name).at(name));
    }

    let mut request = Request::new(filter.map(owned).transpose()?.unwrap_or_default());
    given(sort, |sort| request.sort(sort))?;
    given(projection.filter(|projection| !projection.is_empty()), |projection| request.projection(projection))?;
    given(variables, |variables| request.let_variables(variables))?;
    given(collated, |collation| request.collation(collation))?;
    request.hint = hint;
    request.find_result = if returns_key { FindResult::Key } else { FindResult::Document };
    request.min = min.map(owned).transpose()?;
    request.max = max.map(owned).transpose()?;
    request.unlike_aggregate = unlike_aggregate;
    request.allow_disk_use(disk_use.unwrap_or(true));
    request.skip = skip.unwrap_or_default();
    request.limit = limit.filter(|&limit| limit > 0);
    if single {
        let batch = batch.unwrap_or(FIRST_BATCH);
        request.limit = Some(request.limit.map_or(batch, |limit| limit.min(batch)));
    }
    Ok(ReadCommand::new(collection, request, common))
}

/// Only capped collections have tailable cursors, and Slate has no capped collections.
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

/// Takes the valid arguments that Slate does not support. Returns the name of one that would have an effect.
fn refused(fields: &mut Fields<'_>) -> Result<Option<&'static str>> {
    let mut refused = None;
    for name in ["showRecordId", "$_requestResumeToken"] {
        if fields.boolean_not_null(name)?.unwrap_or_default() {
            refused.get_or_insert(name);
        }
    }
    if fields.object_not_null("$_resumeAfter")?.is_some_and(|token| !token.is_empty()) {
        refused.get_or_insert("$_resumeAfter");
    }
    Ok(refused)
}
