use bson::RawDocumentBuf;

use super::{call::Call, common::Common, concern::Concerns, fields::owned, reply::Reply};
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

/// `{create: collection, collation}`. Succeeds if it exists with the same options.
pub(super) fn run(database: &DatabaseHandle, mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let collation = fields.object("collation")?;
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
    let spec = CollectionSpec { collation: collation.map(owned).transpose()? };
    let create = |writer: &mut dyn Writer| writer.run::<bool>(WriteOp::CreateCollection { collection, spec: &spec });
    Scope::Database(database.clone()).write(create)?;
    Reply::default().finish()
}
