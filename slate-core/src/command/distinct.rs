use bson::RawDocumentBuf;

use super::{
    call::Call,
    concern::Concerns,
    explain::{ExplainedCommand, Purpose},
    fields::{given, missing, owned},
    hint,
    read::ReadCommand,
    reply::Reply,
};
use crate::{ExplainVerbosity, Result, call::Request};

/// `{distinct: collection, key, query, hint}`: the distinct values at the path `key`, in one reply.
pub(super) fn run(call: Call<'_>) -> Result<RawDocumentBuf> {
    let (distinct, key) = parse(call)?;
    let scope = distinct.at.scope;
    let mut reply = Reply::default();
    reply.array("values", |values| {
        let mut place = 0_u64;
        distinct.request.distinct(scope, distinct.collection, key, |value| {
            values.value(&place.to_string(), value);
            place += 1;
        })
    })?;
    reply.finish()
}

/// Returns the plan of a `distinct`.
pub(super) fn explain(call: Call<'_>, verbosity: ExplainVerbosity) -> Result<ExplainedCommand> {
    let (distinct, key) = parse(call)?;
    distinct.explain(verbosity, Purpose::Return, |request, defined| request.parse_distinct(defined, key))
}

/// Parses the command. Returns its query, and the path whose distinct values are wanted.
fn parse<'c>(mut call: Call<'c>) -> Result<(ReadCommand<'c>, &'c str)> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let key = fields.string("key")?;
    let filter = fields.object("query")?;
    let collated = fields.object("collation")?;
    let hint = hint::take(fields)?;
    let common = call.common(Concerns::Read)?;
    call.fields.finish()?;
    let key = key.ok_or_else(|| missing("distinct", "key"))?;

    let mut request = Request::new(filter.map(owned).transpose()?.unwrap_or_default());
    given(collated, |collation| request.collation(collation))?;
    request.hint = hint;
    Ok((ReadCommand::new(call.at, collection, request, common), key))
}
