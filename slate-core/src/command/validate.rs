use bson::RawDocumentBuf;
use slate_query::Code;

use super::{call::Call, concern::Concerns, list_indexes::no_collection, reply::Reply};
use crate::{Error, Result, Verify};

/// `{validate: collection}`: compares the documents of a collection with its indexes.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let [full, background] = [call.fields.truth("full")?, call.fields.truth("background")?];
    for name in ["scandata", "checkBSONConformance"] {
        call.fields.truth(name)?;
    }
    if full == Some(true) && background == Some(true) {
        let message =
            "Running the validate command with both { background: true } and { full: true } is not supported.";
        return Err(Error::invalid(Code::INVALID_OPTIONS, message).at("background"));
    }
    call.fields.refuse(&["repair", "metadata", "collHash", "hashPrefixes", "unhashedPrefixes"])?;
    let common = call.common(Concerns::Neither)?;
    call.fields.finish()?;
    let scope = call.at.scope;
    scope.database("validate")?;
    let there = scope.definition(collection, &common.call)?;
    let there = there.ok_or_else(|| no_collection(&common.full_name(collection)))?.into_collection()?;
    let report = Verify::collection(scope.clone(), &collection.into(), common.call.clone()).run()?;
    let mut reply = Reply::default();
    reply.text("ns", &common.full_name(collection));
    reply.count("nrecords", report.documents);
    // The count includes the index on `_id`.
    reply.count("nIndexes", there.indexes.len() + 1);
    reply.boolean("valid", report.is_sound());
    reply.boolean("repaired", false);
    reply.array("warnings", |_| ());
    reply.array("errors", |errors| {
        for (place, finding) in report.findings.iter().enumerate() {
            errors.text(&place.to_string(), &finding.to_string());
        }
    });
    reply.finish()
}
