use std::sync::Arc;

use bson::RawDocumentBuf;
use slate_query::{Code, raw::Doc};

use super::{
    call::Call,
    common::Common,
    concern::Concerns,
    fields::{Fields, owned},
    reply::Reply,
};
use crate::{
    Error, Result, ValidationAction, ValidationLevel,
    catalog::{CollectionInfo, Validator},
    engine::Writer,
    operation::handle::DatabaseHandle,
    operation::{read_op::ReadOp, scope::Scope, write_op::WriteOp},
    write::ValidatorSpec,
};

/// Options of kinds of collections and indexes that Slate does not have.
const REFUSED: [&str; 9] = [
    "cappedMax",
    "cappedSize",
    "changeStreamPreAndPostImages",
    "expireAfterSeconds",
    "index",
    "pipeline",
    "recordPreImages",
    "timeseries",
    "viewOn",
];

/// `{collMod: collection, validator, validationLevel, validationAction}`.
pub(super) fn run(database: &DatabaseHandle, mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let options = take_validator(fields)?;
    fields.truth("dryRun")?;
    fields.refuse(&REFUSED)?;
    Common::take(fields, Concerns::Write)?;
    call.fields.finish()?;
    Scope::Database(database.clone()).write(|writer: &mut dyn Writer| {
        let there = Option::<Arc<CollectionInfo>>::try_from(writer.read(collection, ReadOp::Definition)?)?;
        let spec = options.over(there.as_ref().and_then(|there| there.validator.as_deref()))?;
        writer.run::<()>(WriteOp::SetValidator { collection, spec: spec.as_ref() })
    })?;
    Reply::default().finish()
}

/// The options of a validator; absent ones keep their values.
pub(super) struct Options<'c> {
    filter: Option<Doc<'c>>,
    level: Option<ValidationLevel>,
    action: Option<ValidationAction>,
}

pub(super) fn take_validator<'c>(fields: &mut Fields<'c>) -> Result<Options<'c>> {
    let filter = fields.object("validator")?;
    let unknown = |name: &str, value: &str| {
        let message = format!("Enumeration value '{value}' for field '{name}' is not a valid value.");
        Error::invalid(Code::BAD_VALUE, message).at(name)
    };
    let level = fields.string("validationLevel")?;
    let level = level.map(|name| ValidationLevel::parse(name).ok_or_else(|| unknown("validationLevel", name)));
    let action = fields.string("validationAction")?;
    let action = action.map(|name| ValidationAction::parse(name).ok_or_else(|| unknown("validationAction", name)));
    Ok(Options { filter, level: level.transpose()?, action: action.transpose()? })
}

impl Options<'_> {
    /// The validator with these options in place of those of `there`. `None` without a filter.
    pub(super) fn over(&self, there: Option<&Validator>) -> Result<Option<ValidatorSpec>> {
        let document = match self.filter {
            Some(filter) => Some(owned(filter)?),
            None => there.map(|there| there.document.clone()),
        };
        Ok(document.map(|document| ValidatorSpec {
            document,
            level: self.level.or_else(|| there.map(|there| there.level)).unwrap_or_default(),
            action: self.action.or_else(|| there.map(|there| there.action)).unwrap_or_default(),
        }))
    }
}
