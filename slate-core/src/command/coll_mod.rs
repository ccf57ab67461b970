use bson::RawDocumentBuf;
use slate_query::{Code, raw::Doc};

use super::{
    call::Call,
    concern::Concerns,
    create_indexes::check_expiry,
    fields::{Fields, missing, owned},
    reply::Reply,
};
use crate::{
    Error, Result, ValidationAction, ValidationLevel,
    call::Writer,
    catalog::{CollectionInfo, Namespace, Validator, is_key_of_id},
    changes::Images,
    write::{ValidatorSpec, ViewSpec, Visibility},
};

/// Options of kinds of collections and indexes that Slate does not have.
const REFUSED: [&str; 5] = ["cappedMax", "cappedSize", "expireAfterSeconds", "recordPreImages", "timeseries"];

/// `{collMod: collection, validator, validationLevel, validationAction, index: {name | keyPattern, hidden, expireAfterSeconds}}` or
/// `{collMod: view, viewOn, pipeline}`.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let options = take_validator(fields)?;
    let images = take_images(fields)?;
    let index = fields.object("index")?.map(IndexChange::parse).transpose()?;
    let (on, pipeline) = (fields.string("viewOn")?, fields.owned_objects("pipeline")?);
    if fields.truth("dryRun")? == Some(true) {
        // MongoDB supports `dryRun` only for the conversion of an index to a unique one.
        let message = "dryRun is only for the conversion of an index to a unique one";
        return Err(Error::invalid(Code::INVALID_OPTIONS, message).at("dryRun"));
    }
    fields.refuse(&REFUSED)?;
    let common = call.common(Concerns::Write)?;
    call.fields.finish()?;
    let changed = call.at.scope.write(&common.call, |writer: &mut dyn Writer| {
        let there = match writer.definition(collection)? {
            Some(Namespace::View(view)) => {
                let images = ("changeStreamPreAndPostImages", images.is_some());
                refuse(
                    [("validator", options.is_given()), ("index", index.is_some()), images],
                    "not supported on a view",
                )?;
                let spec = ViewSpec {
                    on: on.unwrap_or(&view.on).to_owned(),
                    pipeline: pipeline.clone().unwrap_or_else(|| view.pipeline.clone()),
                    collation: None,
                };
                writer.set_view(collection, &spec)?;
                return Ok(IndexBefore::default());
            }
            Some(Namespace::Collection(there)) => Some(there),
            None => None,
        };
        if there.is_some() {
            refuse([("viewOn", on.is_some()), ("pipeline", pipeline.is_some())], "only supported on a view")?;
        }
        let spec = options.over(there.as_ref().and_then(|there| there.validator.as_deref()))?;
        // A command without options changes nothing but is logged as an event.
        if options.is_given() || there.is_none() || (index.is_none() && images.is_none()) {
            writer.set_validator(collection, spec.as_ref())?;
        }
        if let Some(is_kept) = images {
            writer.set_images(collection, if is_kept { Images::Kept } else { Images::None })?;
        }
        let Some(index) = &index else { return Ok(IndexBefore::default()) };
        let name = index.name(there.as_deref())?;
        let expiry = index.expire_after.map(|seconds| writer.set_expiry(collection, &name, seconds)).transpose()?;
        let visibility = index.visibility.map(|new| writer.set_visibility(collection, &name, new)).transpose()?;
        Ok(IndexBefore { visibility, expire_after: expiry.flatten() })
    })?;
    let mut reply = Reply::default();
    if let Some(index) = index {
        if let Some(seconds) = changed.expire_after {
            reply.long("expireAfterSeconds_old", i64::from(seconds));
        }
        if let Some(seconds) = index.expire_after {
            reply.long("expireAfterSeconds_new", seconds);
        }
        if let (Some(before), Some(now)) = (changed.visibility, index.visibility) {
            reply.boolean("hidden_old", before == Visibility::Hidden);
            reply.boolean("hidden_new", now == Visibility::Hidden);
        }
    }
    reply.finish()
}

/// Fails, with `why`, if one of these options is given.
fn refuse<const N: usize>(options: [(&str, bool); N], why: &str) -> Result<()> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            let message = format!("option {why}: {option}");
            Err(Error::invalid(Code::INVALID_OPTIONS, message).at(option))
        }
        None => Ok(()),
    }
}

/// The properties of an index that the command changes, before the change.
#[derive(Default)]
struct IndexBefore {
    visibility: Option<Visibility>,
    /// In seconds. `None` also if the index was no TTL index.
    expire_after: Option<u32>,
}

/// The index to change, by name or keys, and its new properties.
struct IndexChange<'c> {
    name: Option<&'c str>,
    keys: Option<Doc<'c>>,
    visibility: Option<Visibility>,
    expire_after: Option<i64>,
}

impl<'c> IndexChange<'c> {
    fn parse(index: Doc<'c>) -> Result<Self> {
        let mut fields = Fields::read("collMod.index", index)?;
        let (name, keys) = (fields.string("name")?, fields.object("keyPattern")?);
        let hidden = fields.truth("hidden")?;
        let expiry = fields.peek("expireAfterSeconds");
        expiry.map_or(Ok(()), |value| check_expiry(value, Code::INVALID_OPTIONS))?;
        let expire_after = fields.integer("expireAfterSeconds")?;
        fields.refuse(&["prepareUnique", "unique"])?;
        fields.finish()?;
        let refused = |message: &str| Error::invalid(Code::INVALID_OPTIONS, message).at("index");
        if name.is_some() == keys.is_some() {
            return Err(refused("an index is given either by its name or by its keyPattern"));
        }
        if hidden.is_none() && expire_after.is_none() {
            return Err(refused("no expireAfterSeconds, hidden, unique, or prepareUnique field"));
        }
        let visibility = hidden.map(|hidden| if hidden { Visibility::Hidden } else { Visibility::Visible });
        Ok(Self { name, keys, visibility, expire_after })
    }

    /// Returns the index's name. For keys that no index has, the keys as text, for the error.
    fn name(&self, collection: Option<&CollectionInfo>) -> Result<String> {
        Ok(match (self.name, self.keys) {
            (Some(name), _) => name.to_owned(),
            (None, Some(keys)) => {
                let found = collection.map(|there| there.index_of_keys(keys)).transpose()?.flatten();
                match found {
                    Some(index) => index.name.to_string(),
                    None if is_key_of_id(keys) => "_id_".to_owned(),
                    None => format!("{keys:?}"),
                }
            }
            (None, None) => String::new(),
        })
    }
}

/// Reads `changeStreamPreAndPostImages`: whether images are stored; `None` if it is missing.
pub(super) fn take_images(fields: &mut Fields<'_>) -> Result<Option<bool>> {
    let Some(images) = fields.object("changeStreamPreAndPostImages")? else { return Ok(None) };
    let mut images = Fields::read("changeStreamPreAndPostImages", images)?;
    let is_kept = images.boolean("enabled")?.ok_or_else(|| missing("changeStreamPreAndPostImages", "enabled"))?;
    images.finish()?;
    Ok(Some(is_kept))
}

/// The options of a validator in a command; `None` leaves the stored one unchanged.
pub(super) struct ValidatorOptions<'c> {
    filter: Option<Doc<'c>>,
    level: Option<ValidationLevel>,
    action: Option<ValidationAction>,
}

pub(super) fn take_validator<'c>(fields: &mut Fields<'c>) -> Result<ValidatorOptions<'c>> {
    let filter = fields.object("validator")?;
    let unknown = |name: &str, value: &str| {
        let message = format!("Enumeration value '{value}' for field '{name}' is not a valid value.");
        Error::invalid(Code::BAD_VALUE, message).at(name)
    };
    let level = fields.string("validationLevel")?;
    let level = level.map(|name| ValidationLevel::parse(name).ok_or_else(|| unknown("validationLevel", name)));
    let action = fields.string("validationAction")?;
    let action = action.map(|name| ValidationAction::parse(name).ok_or_else(|| unknown("validationAction", name)));
    Ok(ValidatorOptions { filter, level: level.transpose()?, action: action.transpose()? })
}

impl ValidatorOptions<'_> {
    fn is_given(&self) -> bool {
        self.filter.is_some() || self.level.is_some() || self.action.is_some()
    }

    /// Returns the validator with these options, and those of `there` for missing ones; without a filter an empty one. `None` without options.
    pub(super) fn over(&self, there: Option<&Validator>) -> Result<Option<ValidatorSpec>> {
        let document = match self.filter {
            Some(filter) => Some(owned(filter)?),
            None if there.is_none() && self.is_given() => Some(RawDocumentBuf::new()),
            None => there.map(|there| there.document.clone()),
        };
        Ok(document.map(|document| ValidatorSpec {
            document,
            level: self.level.or_else(|| there.map(|there| there.level)).unwrap_or_default(),
            action: self.action.or_else(|| there.map(|there| there.action)).unwrap_or_default(),
        }))
    }
}
