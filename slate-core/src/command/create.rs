use bson::RawDocumentBuf;
use slate_query::{Code, raw::Doc};

use super::{
    call::Call,
    coll_mod,
    common::Common,
    concern::Concerns,
    create_indexes::{self, Unknown},
    fields::owned,
    reply::Reply,
};
use crate::{
    Error, ErrorKind, Result,
    call::Scope,
    catalog::is_key_of_id,
    write::{self, CollectionSpec, Created, IndexSpec, ViewSpec},
};

/// Options of kinds of collections that Slate does not have.
const REFUSED: [&str; 9] = [
    "capped",
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
/// Succeeds if the collection or view exists with the same options.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let collation = fields.object("collation")?;
    let validator = coll_mod::take_validator(fields)?;
    let images = coll_mod::take_images(fields)?;
    let keeps_images = images.unwrap_or_default();
    let view = (fields.string("viewOn")?, fields.owned_objects("pipeline")?);
    let id_index = fields.object("idIndex")?.map(|index| create_indexes::parse(index, Unknown::Refused)).transpose()?;
    fields.truth("autoIndexId")?;
    fields.refuse(&REFUSED)?;
    fields.refuse_filled(&["storageEngine", "indexOptionDefaults"])?;
    let common = call.common(Concerns::Write)?;
    call.fields.finish()?;
    let refused = |message: &str, option: &str| Err(Error::invalid(Code::INVALID_OPTIONS, message).at(option));
    let collation = collation.map(owned).transpose()?;
    let validator = validator.over(None)?;
    let scope = call.at.scope;
    if let Some(index) = &id_index {
        if view.0.is_some() {
            return refused("'idIndex' is not allowed with 'viewOn'", "idIndex");
        }
        check_id_index(index, collation.as_ref())?;
    }
    match view {
        (None, None) => {
            let spec = &CollectionSpec { collation, validator, keeps_images };
            let created = scope.write(&common.call, |writer| writer.create_collection(collection, spec))?;
            check_new(scope, &common, collection, created)?;
        }
        (None, Some(_)) => return refused("'pipeline' requires 'viewOn' to also be specified", "pipeline"),
        (Some(_), _) if images.is_some() => {
            return refused("option not supported on a view: changeStreamPreAndPostImages", "viewOn");
        }
        (Some(_), _) if validator.is_some_and(|validator| !Doc::from(&validator.document).is_empty()) => {
            return refused("option not supported on a view: validator", "validator");
        }
        (Some(""), _) => return Err(Error::invalid(Code::BAD_VALUE, "'viewOn' cannot be empty").at("viewOn")),
        (Some(on), pipeline) => {
            let spec = &ViewSpec { on: on.into(), pipeline: pipeline.unwrap_or_default(), collation };
            let created = scope.write(&common.call, |writer| writer.create_view(collection, spec))?;
            check_new(scope, &common, collection, created)?;
        }
    }
    Reply::default().finish()
}

/// Fails in a transaction if the collection existed, as in MongoDB. Outside of one, creating it again with the same definition has no effect.
fn check_new(scope: &Scope, common: &Common, collection: &str, created: Created) -> Result<()> {
    match (scope, created) {
        (Scope::Transaction(_), Created::Exists) => {
            let message = format!("namespace {} already exists", common.full_name(collection));
            Err(Error::new(ErrorKind::Exists, Code::NAMESPACE_EXISTS, message))
        }
        _ => Ok(()),
    }
}

/// Checks the definition of the index on `_id`, which every collection has.
fn check_id_index(index: &IndexSpec, collation: Option<&RawDocumentBuf>) -> Result<()> {
    let keys = Doc::from(&index.keys);
    if !is_key_of_id(keys) {
        let message = format!("The field 'key' for an _id index must be {{_id: 1}}, but got {keys:?}");
        return Err(Error::invalid(Code::BAD_VALUE, message).at("idIndex"));
    }
    write::check_id_index(index, write::parse_collation(collation)?.as_ref())
}
