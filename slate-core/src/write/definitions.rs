use std::sync::Arc;

use bson::{RawArrayBuf, RawDocumentBuf, cstr, rawdoc};
use slate_query::{Code, collation::Collation, raw::Doc};
use slate_store::{Keyspace, Transaction, TransactionExt};

use super::{
    Session,
    build::{check_expire_after, hidden_id_index},
};
use crate::{
    Error, ErrorKind, Result, ValidationAction, ValidationLevel,
    catalog::{self, CATALOG, Change, CollectionInfo, IndexInfo, Validator, ViewInfo, not_on_view},
    changes::{EventKind, EventSource, Images},
    error::shown_collection,
    namespace,
    options::RenameTarget,
};

/// The options of a collection to create.
#[derive(Clone, Debug, Default)]
pub(crate) struct CollectionSpec {
    pub(crate) collation: Option<RawDocumentBuf>,
    pub(crate) validator: Option<ValidatorSpec>,
    /// Whether streams get the documents before and after each change.
    pub(crate) keeps_images: bool,
}

/// The definition of a view.
#[derive(Clone, Debug, Default)]
pub(crate) struct ViewSpec {
    pub(crate) on: String,
    pub(crate) pipeline: Vec<RawDocumentBuf>,
    pub(crate) collation: Option<RawDocumentBuf>,
}

impl ViewSpec {
    fn parse(&self, name: &str) -> Result<ViewInfo> {
        namespace::check(&self.on)?;
        ViewInfo::parse(name, &self.on, self.pipeline.clone(), parse_collation(self.collation.as_ref())?)
    }
}

/// Parses the collation of a collection or a view.
///
/// # Errors
/// 40414 for an empty document; the errors of [`Collation::parse`].
pub(crate) fn parse_collation(collation: Option<&RawDocumentBuf>) -> Result<Option<Collation>> {
    let Some(collation) = collation.map(Doc::from) else { return Ok(None) };
    if collation.is_empty() {
        let message = "BSON field 'collation.locale' is missing but a required field";
        return Err(Error::invalid(Code(40_414), message).at("collation"));
    }
    Ok(Collation::parse(collation)?)
}

/// The validator of a collection.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValidatorSpec {
    pub(crate) document: RawDocumentBuf,
    pub(crate) level: ValidationLevel,
    pub(crate) action: ValidationAction,
}

impl ValidatorSpec {
    /// Parses the validator. `None` if its document is empty, so that every document is valid, and level and action are the defaults.
    fn parse(&self, collation: Option<&Collation>) -> Result<Option<Arc<Validator>>> {
        let is_default = self.level == ValidationLevel::default() && self.action == ValidationAction::default();
        if Doc::from(&self.document).is_empty() && is_default {
            return Ok(None);
        }
        let parsed = Validator::parse(self.document.clone(), self.level, self.action, collation);
        parsed.map(|validator| Some(Arc::new(validator)))
    }
}

/// Whether queries use an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Visible,
    Hidden,
}

/// Whether the collection or index was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Created {
    New,
    Exists,
}

impl<T: Transaction> Session<T> {
    /// Creates the collection, or returns [`Created::Exists`] if it exists with the same options.
    ///
    /// # Errors
    /// `NamespaceExists` (48) if it exists with other options, or a view has the name.
    pub(crate) fn create_collection(&mut self, name: &str, spec: &CollectionSpec) -> Result<Created> {
        self.begin_call()?;
        let collation = parse_collation(spec.collation.as_ref())?;
        let validator = spec.validator.as_ref().map(|validator| validator.parse(collation.as_ref()));
        let validator = validator.transpose()?.flatten();
        if let Some(there) = self.catalog.collection(name) {
            let options = |validator: &Option<Arc<Validator>>| {
                let validator = validator.as_deref()?;
                Some((validator.document.clone(), validator.level, validator.action))
            };
            let is_same = there.collation == collation && there.keeps_images == spec.keeps_images;
            if is_same && options(&there.validator) == options(&validator) {
                return Ok(Created::Exists);
            }
            return Err(exists_otherwise(name));
        }
        if self.catalog.view(name).is_some() {
            return Err(exists_otherwise(name));
        }
        let mut collection = CollectionInfo::clone(&*self.written_or_new(name)?);
        collection.collation = collation;
        collection.validator = validator;
        collection.keeps_images = spec.keeps_images;
        self.define(&collection)?;
        Ok(Created::New)
    }

    /// Creates the view, or returns [`Created::Exists`] if it exists with the same definition.
    ///
    /// # Errors
    /// `NamespaceExists` (48) if a collection has the name, or a view with another definition. Also fails as
    /// [`ViewInfo::parse`] and [`Catalog::check_views`](catalog::Catalog::check_views) do.
    pub(crate) fn create_view(&mut self, name: &str, spec: &ViewSpec) -> Result<Created> {
        self.begin_call()?;
        namespace::check(name)?;
        let view = spec.parse(name)?;
        match (self.catalog.view(name), self.catalog.collection(name)) {
            (Some(there), _) if there.has_definition_of(&view) => return Ok(Created::Exists),
            (None, None) => self.catalog.check_new(name)?,
            _ => return Err(exists_otherwise(name)),
        }
        self.define_view(view)?;
        Ok(Created::New)
    }

    /// Replaces the definition of a view, except its collation.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26) if it does not exist; `InvalidOptions` (72) for a collection. Also fails as
    /// [`create_view`](Self::create_view) does.
    pub(crate) fn set_view(&mut self, name: &str, spec: &ViewSpec) -> Result<()> {
        self.begin_call()?;
        let Some(there) = self.catalog.view(name).cloned() else {
            return Err(match self.catalog.collection(name) {
                Some(_) => Error::invalid(Code::INVALID_OPTIONS, format!("{name} is a collection, not a view")),
                None => missing(name),
            });
        };
        let view = ViewInfo { collation: there.collation.clone(), ..spec.parse(name)? };
        self.define_view(view)
    }

    fn define_view(&mut self, view: ViewInfo) -> Result<()> {
        let mut catalog = Arc::clone(&self.catalog);
        Arc::make_mut(&mut catalog).put_view(view.clone());
        catalog.check_views(&view)?;
        self.redefined(&view.name)?;
        let (kind, shown) = match self.catalog.view(&view.name) {
            None => (EventKind::Create, created_view(&view)),
            Some(_) => (EventKind::Modify, created_view(&view)),
        };
        self.log_definition(kind, &view.name, None, || shown);
        self.catalog = catalog;
        Ok(())
    }

    /// Hides an index from queries, or shows it. Returns what it was before.
    ///
    /// # Errors
    /// `IndexNotFound` (27) if it does not exist; `BadValue` (2) for the index on `_id`.
    pub(crate) fn set_visibility(&mut self, name: &str, index: &str, visibility: Visibility) -> Result<Visibility> {
        self.begin_call()?;
        if index == "_id_" {
            return Err(hidden_id_index().at("index"));
        }
        let missing = || missing_index(name, index);
        let collection = self.written(name)?.ok_or_else(missing)?;
        let mut changed = CollectionInfo::clone(&collection);
        let found = changed.indexes.iter_mut().find(|found| &*found.name == index).ok_or_else(missing)?;
        let before = if found.hidden { Visibility::Hidden } else { Visibility::Visible };
        if before != visibility {
            let is_hidden = visibility == Visibility::Hidden;
            Arc::make_mut(found).hidden = is_hidden;
            self.define(&changed)?;
            let described = || rawdoc! { "index": { "name": index, "hidden": is_hidden } };
            self.log_definition(EventKind::Modify, name, Some(collection.records), described);
        }
        Ok(before)
    }

    /// Sets the seconds after which the documents of an index expire, which makes it a TTL index. Returns the seconds before; `None` if
    /// it was not one.
    ///
    /// # Errors
    /// `IndexNotFound` (27) if it does not exist; `InvalidOptions` (72) for the index on `_id`, an index on several fields and a number
    /// out of range.
    pub(crate) fn set_expiry(&mut self, name: &str, index: &str, seconds: i64) -> Result<Option<u32>> {
        self.begin_call()?;
        let refused = |message: &str| Error::invalid(Code::INVALID_OPTIONS, message).at("expireAfterSeconds");
        if index == "_id_" {
            return Err(refused("the _id field does not support TTL indexes"));
        }
        let seconds = check_expire_after(seconds).map_err(|message| refused(&message))?;
        let missing = || missing_index(name, index);
        let collection = self.written(name)?.ok_or_else(missing)?;
        let mut changed = CollectionInfo::clone(&collection);
        let found = changed.indexes.iter_mut().find(|found| &*found.name == index).ok_or_else(missing)?;
        if found.wildcard.is_some() || found.pattern.fields().len() != 1 {
            return Err(refused("TTL indexes are single-field indexes, compound indexes do not support TTL"));
        }
        let before = found.expire_after;
        if before != Some(seconds) {
            Arc::make_mut(found).expire_after = Some(seconds);
            self.define(&changed)?;
            let described = || rawdoc! { "index": { "name": index, "expireAfterSeconds": i64::from(seconds) } };
            self.log_definition(EventKind::Modify, name, Some(collection.records), described);
        }
        Ok(before)
    }

    /// Replaces the validator of a collection, or removes it.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26) if the collection does not exist; the errors of the validator.
    pub(crate) fn set_validator(&mut self, name: &str, spec: Option<&ValidatorSpec>) -> Result<()> {
        self.begin_call()?;
        let Some(collection) = self.written(name)? else {
            return Err(missing(name));
        };
        let mut changed = CollectionInfo::clone(&collection);
        changed.validator = spec.map(|spec| spec.parse(collection.collation.as_ref())).transpose()?.flatten();
        self.define(&changed)?;
        let described = || {
            let mut described = RawDocumentBuf::new();
            changed.validator.iter().for_each(|validator| validator.append_options(&mut described));
            if changed.validator.as_ref().is_none_or(|validator| validator.is_empty()) {
                described.append(cstr!("validator"), RawDocumentBuf::new());
            }
            described
        };
        self.log_definition(EventKind::Modify, name, Some(collection.records), described);
        Ok(())
    }

    /// Sets whether the log of changes stores the documents before and after each change for streams.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26) if the collection does not exist.
    pub(crate) fn set_images(&mut self, name: &str, images: Images) -> Result<()> {
        self.begin_call()?;
        let Some(collection) = self.written(name)? else {
            return Err(missing(name));
        };
        let keeps_images = images == Images::Kept;
        if collection.keeps_images != keeps_images {
            self.define(&CollectionInfo { keeps_images, ..CollectionInfo::clone(&collection) })?;
            let described = || rawdoc! { "changeStreamPreAndPostImages": { "enabled": keeps_images } };
            self.log_definition(EventKind::Modify, name, Some(collection.records), described);
        }
        Ok(())
    }

    /// Drops the collection and its indexes, or the view. Returns whether it existed.
    pub(crate) fn drop_collection(&mut self, name: &str) -> Result<bool> {
        let records = self.catalog.collection(name).map(|collection| collection.records);
        let existed = self.remove_collection(name)?;
        if existed {
            self.log_definition(EventKind::Drop, name, records, RawDocumentBuf::new);
        }
        Ok(existed)
    }

    fn remove_collection(&mut self, name: &str) -> Result<bool> {
        self.begin_call()?;
        if self.catalog.view(name).is_some() {
            self.redefined(name)?;
            Arc::make_mut(&mut self.catalog).remove(name);
            return Ok(true);
        }
        let Some(collection) = self.catalog.collection(name).cloned() else { return Ok(false) };
        self.unlink(collection.records)?;
        for index in collection.maintained() {
            self.unlink(index.keyspace)?;
        }
        for unfinished in &collection.building {
            catalog::BuildPosition::forget(&mut self.transaction, unfinished.keyspace)?;
        }
        self.redefined(name)?;
        Arc::make_mut(&mut self.catalog).remove(name);
        Ok(true)
    }

    /// Renames a collection.
    ///
    /// # Errors
    /// `NamespaceNotFound` (26) if it does not exist; `CommandNotSupportedOnView` (166) for a view; `IllegalOperation` (20) if both names are equal;
    /// `NamespaceExists` (48) if the new name is that of a view, or of a collection that must not be dropped.
    pub(crate) fn rename_collection(&mut self, from: &str, to: &str, target: RenameTarget) -> Result<()> {
        self.begin_call()?;
        namespace::check(to)?;
        if self.catalog.view(from).is_some() {
            return Err(not_on_view(from));
        }
        let Some(collection) = self.catalog.collection(from).cloned() else { return Err(missing(from)) };
        if from == to {
            return Err(Error::invalid(Code::ILLEGAL_OPERATION, "a collection cannot be renamed to its own name"));
        }
        if self.catalog.view(to).is_some() {
            let message = format!("a view of the name {} exists already", shown_collection(to));
            return Err(Error::new(ErrorKind::Exists, Code::NAMESPACE_EXISTS, message));
        }
        let dropped = self.catalog.collection(to).map(|dropped| dropped.records);
        if dropped.is_some() {
            if target == RenameTarget::MustNotExist {
                let message = format!("a collection of the name {} exists already", shown_collection(to));
                return Err(Error::new(ErrorKind::Exists, Code::NAMESPACE_EXISTS, message));
            }
            self.remove_collection(to)?;
        } else {
            self.catalog.check_new(to)?;
        }
        self.redefined(from)?;
        Arc::make_mut(&mut self.catalog).remove(from);
        self.redefine(&CollectionInfo { name: to.into(), ..CollectionInfo::clone(&collection) })?;
        // Logged even if only one of the two databases is logged, because that one gains or loses a collection.
        let logged = if self.logs(from) { from } else { to };
        if self.logs(logged) {
            let mut described = rawdoc! { "to": to };
            if let Some(dropped) = dropped {
                described.append(cstr!("dropTarget"), i64::from(dropped.0));
            }
            let source = EventSource { name: from, records: Some(collection.records), images: Images::None };
            self.events.push(EventKind::Rename, source, &[described.as_bytes()]);
        }
        Ok(())
    }

    /// Makes a keyspace that nothing refers to any more a pending drop.
    pub(super) fn unlink(&mut self, keyspace: Keyspace) -> Result<()> {
        let lease = (!self.capabilities().exclusive).then(|| self.shared.leases.value());
        catalog::add_pending_drop(&mut self.transaction, keyspace, lease)?;
        self.pending_drops.push(keyspace);
        Ok(())
    }

    pub(super) fn allocate(&mut self) -> Result<Keyspace> {
        Arc::make_mut(&mut self.catalog).allocate()
    }

    /// Creates the collection, or replaces its definition. Every open writer of the collection conflicts with it.
    pub(super) fn define(&mut self, collection: &CollectionInfo) -> Result<()> {
        if self.catalog.collection(&collection.name).is_none() {
            self.log_definition(EventKind::Create, &collection.name, Some(collection.records), || created(collection));
        }
        self.redefine(collection)
    }

    fn redefine(&mut self, collection: &CollectionInfo) -> Result<()> {
        self.redefined(&collection.name)?;
        Arc::make_mut(&mut self.catalog).put(collection.clone());
        Ok(())
    }

    /// Replaces a collection's catalog entry by one with other properties. Conflicts with other changes of this entry, not with open writers.
    pub(super) fn set_properties(&mut self, collection: CollectionInfo) {
        self.collections.of(&collection.name).change(Change::Properties);
        Arc::make_mut(&mut self.catalog).put(collection);
    }

    pub(super) fn redefined(&mut self, name: &str) -> Result<()> {
        self.transaction.put(CATALOG, &catalog::definition_key(name), &[])?;
        self.collections.of(name).change(Change::Definition);
        Ok(())
    }

    /// Stores new properties of an index (multikey, truncated). Only writers that add more properties conflict.
    pub(super) fn add_index_properties(&mut self, collection: &str, added: Vec<(usize, IndexInfo)>) {
        let Some(known) = self.catalog.collection(collection) else { return };
        let mut changed = CollectionInfo::clone(known);
        for (at, index) in added {
            if let Some(place) = changed.maintained_at_mut(at) {
                // The index may have got other properties since these were collected; the union is stored.
                let place = Arc::make_mut(place);
                place.add_multikey(&index.multikey);
                if let (Some(place), Some(wildcard)) = (&mut place.wildcard, &index.wildcard) {
                    place.add(wildcard);
                }
                place.truncated |= index.truncated;
            }
        }
        self.set_properties(changed);
    }
}

/// Returns what is logged of a new collection.
fn created(collection: &CollectionInfo) -> RawDocumentBuf {
    let mut described = RawDocumentBuf::new();
    if let Some(collation) = &collection.collation {
        described.append(cstr!("collation"), collation.to_document());
    }
    if let Some(validator) = &collection.validator {
        validator.append_options(&mut described);
    }
    if collection.keeps_images {
        described.append(cstr!("changeStreamPreAndPostImages"), rawdoc! { "enabled": true });
    }
    described.append(cstr!("idIndex"), rawdoc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" });
    described
}

/// Returns what is logged of a view.
fn created_view(view: &ViewInfo) -> RawDocumentBuf {
    let stages: RawArrayBuf = view.pipeline.iter().cloned().collect();
    rawdoc! { "viewOn": namespace::split(&view.on).1, "pipeline": stages }
}

fn missing(name: &str) -> Error {
    let message = format!("there is no collection of the name {name}");
    Error::new(ErrorKind::NotFound, Code::NAMESPACE_NOT_FOUND, message)
}

fn missing_index(name: &str, index: &str) -> Error {
    let message = format!("cannot find index {index} of collection {name}");
    Error::new(ErrorKind::NotFound, Code::INDEX_NOT_FOUND, message)
}

fn exists_otherwise(name: &str) -> Error {
    let message = format!("{} already exists with other options", shown_collection(name));
    Error::new(ErrorKind::Exists, Code::NAMESPACE_EXISTS, message)
}
