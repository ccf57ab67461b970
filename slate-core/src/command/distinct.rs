use bson::RawDocumentBuf;

use super::{
    call::Call,
    common::Common,
    concern::Concerns,
    fields::{missing, owned},
    hint,
    reply::Reply,
};
use crate::{
    Explain, ExplainVerbosity, Result, operation::handle::DatabaseHandle, operation::request::Request,
    operation::scope::Scope,
};

/// A parsed `distinct`.
struct Distinct<'c> {
    collection: &'c str,
    key: &'c str,
    common: Common,
    request: Request,
}

/// `{distinct: collection, key, query, hint}`.
pub(super) fn run(database: &DatabaseHandle, call: Call<'_>) -> Result<RawDocumentBuf> {
    let distinct = parse(call)?;
    let scope = Scope::Database(database.clone());
    let mut reply = Reply::default();
    reply.array("values", |values| {
        let mut place = 0_u64;
        distinct.request.distinct(&scope, distinct.collection, distinct.key, |value| {
            values.value(&place.to_string(), value);
            place += 1;
        })
    })?;
    reply.finish()
}

/// The plan of a `distinct`.
pub(super) fn explain(
    database: &DatabaseHandle,
    call: Call<'_>,
    verbosity: ExplainVerbosity,
) -> Result<(Common, Explain)> {
    let distinct = parse(call)?;
    let scope = Scope::Database(database.clone());
    let explain = distinct.request.resolved(|request| {
        scope.explain(distinct.collection, &request.parse_distinct(distinct.key)?, verbosity, &request.interrupt)
    })?;
    Ok((distinct.common, explain))
}

fn parse(mut call: Call<'_>) -> Result<Distinct<'_>> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let key = fields.string("key")?;
    let filter = fields.object("query")?;
    let collated = fields.object("collation")?;
    let hint = hint::take(fields)?;
    let common = Common::take(fields, Concerns::Read)?;
    call.fields.finish()?;
    let key = key.ok_or_else(|| missing("distinct", "key"))?;

    let mut request = Request::new(filter.map(owned).transpose()?.unwrap_or_default());
    if let Some(collation) = collated {
        request.collation(owned(collation)?);
    }
    request.hint = hint;
    request.interrupt = common.interrupt.clone();
    Ok(Distinct { collection, key, common, request })
}
