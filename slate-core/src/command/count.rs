use bson::RawDocumentBuf;
use slate_query::{Code, number::Number, raw::Value};

use super::{
    call::Call,
    concern::Concerns,
    explain::{ExplainedCommand, Purpose},
    fields::{given, owned},
    hint, number,
    read::ReadCommand,
    reply::Reply,
};
use crate::{Error, ExplainVerbosity, Result, call::Request};

/// `{count: collection, query, limit, skip, hint}`: the number of matching documents, after skip and limit.
pub(super) fn run(call: Call<'_>) -> Result<RawDocumentBuf> {
    let count = parse(call)?;
    let counted = count.request.count(count.at.scope, count.collection)?;
    let mut reply = Reply::default();
    reply.count("n", counted);
    reply.finish()
}

/// Returns the plan of a `count`.
pub(super) fn explain(call: Call<'_>, verbosity: ExplainVerbosity) -> Result<ExplainedCommand> {
    parse(call)?.explain(verbosity, Purpose::Count, Request::parse_count)
}

fn parse(mut call: Call<'_>) -> Result<ReadCommand<'_>> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let filter = fields.object("query")?;
    let limit = fields.any("limit").map(limit).transpose()?;
    let skip = fields.size("skip")?;
    let hint = hint::take(fields)?;
    let collated = fields.object("collation")?;
    // MongoDB's shell sends it; it has no effect on a count.
    fields.any("fields");
    let common = call.common(Concerns::Read)?;
    call.fields.finish()?;

    let mut request = Request::new(filter.map(owned).transpose()?.unwrap_or_default());
    given(collated, |collation| request.collation(collation))?;
    request.hint = hint;
    request.window.skip = skip.unwrap_or_default();
    request.window.limit = limit.filter(|&limit| limit > 0);
    Ok(ReadCommand::new(call.at, collection, request, common))
}

/// Converts a limit: a negative limit means the same as the positive one.
fn limit(limit: Value<'_>) -> Result<u64> {
    let refused = |message| Error::invalid(Code::BAD_VALUE, message).at("limit");
    let limit = Number::of(limit).ok_or_else(|| refused("limit value is not a valid number"))?;
    let limit = number::exact_i64("limit", limit)?;
    if limit == i64::MIN {
        return Err(refused("limit value for count cannot be min long"));
    }
    Ok(limit.unsigned_abs())
}
