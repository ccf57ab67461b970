use bson::RawDocumentBuf;
use slate_query::Code;

use super::{call::Call, coll_mod, common::Common, concern::Concerns, fields::owned, reply::Reply};
use crate::{
    Error, Result,
    operation::handle::DatabaseHandle,
    operation::{scope::Scope, write_op::WriteOp},
    write::{CollectionSpec, ViewSpec},
};

/// Options of kinds of collections that Slate does not have.
const REFUSED: [&str; 10] = [
    "capped",
    "changeStreamPreAndPostImages",
    "clusteredIndex",
    "encryptedFields",
    "expireAfterSeconds",
    "max",
    "recordIdsReplicated",
    "size",
    "temp",
    "timeseries",
];

/// `{create: collection, collation, validator, validationLevel, validationAction}` or `{create: view, viewOn, pipeline, collation}`.
/// Succeeds if it exists with the same options.
pub(super) fn run(database: &DatabaseHandle, mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let collation = fields.object("collation")?;
    let validator = coll_mod::take_validator(fields)?;
    let view = (fields.string("viewOn")?, fields.owned_objects("pipeline")?);
    fields.object("idIndex")?;
    fields.truth("autoIndexId")?;
    fields.refuse(&REFUSED)?;
    fields.refuse_filled(&["storageEngine", "indexOptionDefaults"])?;
    let common = Common::take(fields, Concerns::Write)?;
    call.fields.finish()?;
    let refused = |message: &str, option: &str| Err(Error::invalid(Code::INVALID_OPTIONS, message).at(option));
    let collation = collation.map(owned).transpose()?;
    let validator = validator.over(None)?;
    let scope = Scope::Database(database.clone());
    match view {
        (None, None) => {
            let spec = &CollectionSpec { collation, validator };
            scope.write(&common.interrupt, |writer| {
                writer.run::<bool>(WriteOp::CreateCollection { collection, spec })
            })?;
        }
        (None, Some(_)) => return refused("'pipeline' requires 'viewOn' to also be specified", "pipeline"),
        (Some(_), _) if validator.is_some() => {
            return refused("option not supported on a view: validator", "validator");
        }
        (Some(""), _) => return Err(Error::invalid(Code::BAD_VALUE, "'viewOn' cannot be empty").at("viewOn")),
        (Some(on), pipeline) => {
            let spec = &ViewSpec { on: on.into(), pipeline: pipeline.unwrap_or_default(), collation };
            scope.write(&common.interrupt, |writer| {
                writer.run::<bool>(WriteOp::CreateView { name: collection, spec })
            })?;
        }
    }
    Reply::default().finish()
}
