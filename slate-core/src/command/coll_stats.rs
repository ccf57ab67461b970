use bson::RawDocumentBuf;
use slate_query::Code;

use super::{call::Call, concern::Concerns, fields::Fields, reply::Reply};
use crate::{Error, Result, call::ReadSet, stats::sizes};

/// MongoDB's limit on the number by which sizes are divided.
const MAX_SCALE: u64 = 1 << 50;

/// `{collStats: collection, scale}`: the sizes of a collection and its indexes.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let name = call.collection()?;
    let scale = scale(&mut call.fields)?;
    let common = call.common(Concerns::Read)?;
    call.fields.finish()?;

    let sizes = call.at.scope.read(ReadSet::Collection(name), &common.call, |reader| {
        let stats = reader.stats(name, &common.call)?;
        Ok(match reader.catalog().collection(name) {
            Some(collection) => sizes::of_collection(&stats, collection, scale),
            None => sizes::of_no_collection(scale),
        })
    })?;
    let mut reply = Reply::default();
    reply.text("ns", &common.full_name(name));
    reply.fields(&sizes)?;
    reply.finish()
}

/// Reads the number by which sizes are divided; 1 if it is missing.
///
/// # Errors
/// Fails with `BadValue` (2) for a number below 1 or above 2^50.
pub(super) fn scale(fields: &mut Fields<'_>) -> Result<u64> {
    let Some(scale) = fields.integer("scale")? else { return Ok(1) };
    u64::try_from(scale).ok().filter(|scale| (1..=MAX_SCALE).contains(scale)).ok_or_else(|| {
        let message = format!("BSON field 'scale' value must be >= 1 and <= {MAX_SCALE}, actual value '{scale}'");
        Error::invalid(Code::BAD_VALUE, message).at("scale")
    })
}
