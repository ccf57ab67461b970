use bson::RawDocumentBuf;
use slate_query::{
    Code,
    raw::{Kind, Value},
};

use super::{call::Call, concern::Concerns, fields::missing, get_more::no_cursors, reply::Reply};
use crate::{Error, Result};

/// `{killCursors: collection, cursors: [id, …]}`: closes the cursors; none if one belongs to another user.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let ids = call.fields.any("cursors").ok_or_else(|| missing("killCursors", "cursors"))?;
    let ids = ids.as_array().ok_or_else(|| call.fields.mistyped("cursors", ids, "array"))?;
    let ids: Vec<i64> = ids.values().map(id).collect::<Result<_>>()?;
    let common = call.common(Concerns::Neither)?;
    call.fields.finish()?;
    let Some(cursors) = call.at.cursors else { return Err(no_cursors("killCursors")) };
    let (killed, missing) = cursors.kill(&ids, common.owner.as_ref())?;
    let mut reply = Reply::default();
    for (name, ids) in
        [("cursorsKilled", &*killed), ("cursorsNotFound", &*missing), ("cursorsAlive", &[]), ("cursorsUnknown", &[])]
    {
        reply.array(name, |array| ids.iter().enumerate().for_each(|(place, id)| array.long(&place.to_string(), *id)));
    }
    reply.finish()
}

fn id(value: Value<'_>) -> Result<i64> {
    value.as_i64().filter(|_| value.kind() == Kind::Int64).ok_or_else(|| {
        let message = format!("cursor ids are longs, not {}", value.kind().alias());
        Error::invalid(Code::TYPE_MISMATCH, message).at("cursors")
    })
}
