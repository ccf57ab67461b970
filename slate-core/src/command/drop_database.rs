use bson::RawDocumentBuf;
use slate_query::{Code, number::Number};

use super::{call::Call, concern::Concerns, reply::Reply};
use crate::{Error, Result, namespace};

/// `{dropDatabase: 1}`: drops the collections and views of one database together. Those of other databases remain.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let number = Number::of(call.target);
    let number = number.ok_or_else(|| call.fields.mistyped("dropDatabase", call.target, "number"))?;
    let common = call.common(Concerns::Write)?;
    call.fields.finish()?;
    if number != Number::Int32(1) {
        let message = "BSON field 'dropDatabase' value must be = 1";
        return Err(Error::invalid(Code::BAD_VALUE, message).at("dropDatabase"));
    }
    let database = common.database.clone();
    let scope = call.at.scope;
    scope.database("dropDatabase")?;
    let names: Vec<String> = scope.catalog(&common.call)?.names();
    let names: Vec<String> = names.into_iter().filter(|name| namespace::split(name).0 == database).collect();
    scope.write(&common.call, |writer| {
        names.iter().try_for_each(|name| writer.drop_collection(name).map(drop))?;
        if names.is_empty() { Ok(()) } else { writer.dropped_database(&database) }
    })?;
    let mut reply = Reply::default();
    if !names.is_empty() {
        reply.text("dropped", &database);
    }
    reply.finish()
}
