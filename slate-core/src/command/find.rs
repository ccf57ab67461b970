use bson::RawDocumentBuf;
use slate_query::Code;

use super::{
    call::Call,
    common::Common,
    concern::Concerns,
    fields::{Fields, owned},
    hint,
    reply::Reply,
};
use crate::{
    Error, Explain, ExplainVerbosity, Result, operation::handle::DatabaseHandle, operation::request::Request,
    operation::scope::Scope,
};

/// The number of documents in MongoDB's first batch if the command gives no size.
const FIRST_BATCH: u64 = 101;

/// A parsed `find`.
struct Find<'c> {
    collection: &'c str,
    common: Common,
    request: Request,
}

/// `{find: collection, filter, projection, sort, hint, skip, limit, …}`.
pub(super) fn run(database: &DatabaseHandle, call: Call<'_>) -> Result<RawDocumentBuf> {
    let find = parse(call)?;
    let mut rows = find.request.find(&Scope::Database(database.clone()), find.collection)?;
    let mut reply = Reply::default();
    reply.cursor(&find.common.namespace(find.collection), |batch, name| {
        let more = rows.advance()?;
        if let Some(row) = rows.current().filter(|_| more) {
            batch.document(name, row);
        }
        Ok(more)
    })?;
    reply.finish()
}

/// The plan of a `find`.
pub(super) fn explain(
    database: &DatabaseHandle,
    call: Call<'_>,
    verbosity: ExplainVerbosity,
) -> Result<(Common, Explain)> {
    let find = parse(call)?;
    let scope = Scope::Database(database.clone());
    let explain = find
        .request
        .resolved(|request| scope.explain(find.collection, &request.parse_find()?, verbosity, &request.interrupt))?;
    Ok((find.common, explain))
}

fn parse(mut call: Call<'_>) -> Result<Find<'_>> {
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
    for name in ["noCursorTimeout", "allowPartialResults", "oplogReplay", "readOnce"] {
        fields.boolean_not_null(name)?;
    }
    not_tailable(fields)?;
    let variables = fields.object("let")?;
    let refused = refused(fields)?;
    let common = Common::take(fields, Concerns::Read)?;
    call.fields.finish()?;
    if let Some(name) = refused {
        return Err(Error::unsupported_by_name(name).at(name));
    }

    let mut request = Request::new(filter.map(owned).transpose()?.unwrap_or_default());
    if let Some(sort) = sort {
        request.sort(owned(sort)?);
    }
    if let Some(projection) = projection.filter(|projection| !projection.is_empty()) {
        request.projection(owned(projection)?);
    }
    if let Some(variables) = variables {
        request.let_variables(owned(variables)?);
    }
    if let Some(collation) = collated {
        request.collation(owned(collation)?);
    }
    request.hint = hint;
    request.allow_disk_use(disk_use.unwrap_or(true));
    request.skip = skip.unwrap_or_default();
    request.limit = limit.filter(|&limit| limit > 0);
    if single {
        let batch = batch.unwrap_or(FIRST_BATCH);
        request.limit = Some(request.limit.map_or(batch, |limit| limit.min(batch)));
    }
    request.interrupt = common.interrupt.clone();
    Ok(Find { collection, common, request })
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
    for name in ["returnKey", "showRecordId", "$_requestResumeToken"] {
        if fields.boolean_not_null(name)?.unwrap_or_default() {
            refused.get_or_insert(name);
        }
    }
    for name in ["min", "max", "$_resumeAfter"] {
        if fields.object_not_null(name)?.is_some_and(|bounds| !bounds.is_empty()) {
            refused.get_or_insert(name);
        }
    }
    Ok(refused)
}
