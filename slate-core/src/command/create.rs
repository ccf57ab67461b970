use bson::RawDocumentBuf;

use super::{call::Call, collation, common::Common, concern::Concerns, reply::Reply};
use crate::{
    Result,
    operation::handle::DatabaseHandle,
    operation::{scope::Scope, write_op::WriteOp},
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

/// `{create: collection}`. An existing collection is not changed.
pub(super) fn run(database: &DatabaseHandle, mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let collated = fields.object("collation")?;
    // These configure a validator, and Slate has none.
    for name in ["validationLevel", "validationAction"] {
        fields.string(name)?;
    }
    fields.object("idIndex")?;
    fields.truth("autoIndexId")?;
    fields.refuse(&REFUSED)?;
    fields.refuse_filled(&["validator", "storageEngine", "indexOptionDefaults"])?;
    Common::take(fields, Concerns::Write)?;
    call.fields.finish()?;
    collation::refuse(collated)?;
    Scope::Database(database.clone()).write(|writer| writer.run::<bool>(WriteOp::CreateCollection(collection)))?;
    Reply::default().finish()
}
