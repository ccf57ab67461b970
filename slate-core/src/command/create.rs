use bson::RawDocumentBuf;

use super::{call::Call, coll_mod, common::Common, concern::Concerns, fields::owned, reply::Reply};
use crate::{
    Result,
    engine::Writer,
    operation::handle::DatabaseHandle,
    operation::{scope::Scope, write_op::WriteOp},
    write::CollectionSpec,
};

/// Options of kinds of collections that Slate does not have.
const REFUSED: [&str; 12] = [
    "capped",
    "changeStreamPreAndPostImages",
    "clusteredIndex",
    "encryptedFields",
    "expireAfterSeconds",
    "max",
    "pipeline",
    "recordIdsReplicated",
    "size",
    "temp",
    "timeseries",
    "viewOn",
];

/// `{create: collection, collation, validator, validationLevel, validationAction}`. Succeeds if it exists with the same options.
pub(super) fn run(database: &DatabaseHandle, mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let collation = fields.object("collation")?;
    let validator = coll_mod::take_validator(fields)?;
    fields.object("idIndex")?;
    fields.truth("autoIndexId")?;
    fields.refuse(&REFUSED)?;
    fields.refuse_filled(&["storageEngine", "indexOptionDefaults"])?;
    let common = Common::take(fields, Concerns::Write)?;
    call.fields.finish()?;
    let validator = validator.over(None)?;
    let spec = CollectionSpec { collation: collation.map(owned).transpose()?, validator };
    let create = |writer: &mut dyn Writer| writer.run::<bool>(WriteOp::CreateCollection { collection, spec: &spec });
    Scope::Database(database.clone()).write(&common.interrupt, create)?;
    Reply::default().finish()
}
