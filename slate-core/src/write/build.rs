use std::{ops::ControlFlow, sync::Arc};

use bson::{RawDocumentBuf, rawdoc};
use slate_query::{
    Code,
    collation::Collation,
    filter,
    pattern::KeyPattern,
    raw::{Doc, Value},
};
use slate_store::{Bounds, Keyspace, Transaction, View};

use super::{Created, Session, change_set::ChangeSet};
use crate::{
    Error, ErrorKind, Result,
    call_context::CallContext,
    catalog::{CollectionInfo, IndexDescription, IndexInfo, Partial, Wildcard, is_key_of_id},
    changes::EventKind,
};

/// The definition of an index to create.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexSpec {
    pub(crate) name: Option<String>,
    pub(crate) keys: RawDocumentBuf,
    pub(crate) unique: bool,
    pub(crate) sparse: bool,
    pub(crate) hidden: bool,
    /// In seconds, not yet checked.
    pub(crate) expire_after: Option<i64>,
    pub(crate) partial: Option<RawDocumentBuf>,
    pub(crate) collation: Option<RawDocumentBuf>,
    pub(crate) wildcard_projection: Option<RawDocumentBuf>,
}

/// A callback that receives the number of documents read by an index build.
pub(crate) type BuildProgress<'p> = &'p mut dyn FnMut(u64);

/// Maximum number of documents of a round of a build.
pub(crate) const ROUND: usize = 1_024;

impl<T: Transaction> Session<T> {
    /// Creates an index and fills it in this transaction, in place of an unfinished build of it. If the same index exists, creates at most its
    /// collection. Returns the index's name.
    pub(crate) fn create_index(
        &mut self,
        name: &str,
        spec: &IndexSpec,
        progress: BuildProgress<'_>,
        call: &CallContext,
    ) -> Result<(String, Created)> {
        self.begin_call()?;
        let call = &self.limited(call);
        let collection = self.written_or_new(name)?;
        let wanted = parse(spec, &collection)?;
        if let Some(there) = existing(&collection, &wanted, spec)? {
            self.define_if_new(&collection)?;
            return Ok((there, Created::Exists));
        }
        let unfinished = find_same(&collection.building, &wanted)?.map(|index| index.keyspace);
        let index = IndexInfo { keyspace: self.allocate()?, ..wanted };
        let created = index.name.to_string();
        let (mut defined, at) = (CollectionInfo::clone(&collection), collection.indexes.len());
        // The whole build runs in this transaction.
        defined.building.retain(|index| Some(index.keyspace) != unfinished);
        defined.indexes.push(Arc::new(index));
        let defined = Arc::new(defined);
        self.read_whole(name);
        let mut changes = self.change_set(&defined, call);
        let mut read = 0;
        self.read_records(&defined, None, call, |key, document| {
            changes.index(&defined, at, key, document)?;
            changes.spill_if_full()?;
            read += 1;
            if read % ROUND as u64 == 0 {
                progress(read);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        changes.finish(call)?;
        changes.check_unique(&self.view(), &defined)?;
        self.check_transaction_size(&defined, &changes)?;
        let applied = self.apply_index(unfinished, &defined, &mut changes);
        self.end_on_error(applied)?;
        progress(read);
        Ok((created, Created::New))
    }

    /// Defines the collection with its new index, in place of an unfinished build of that index, and puts the entries.
    fn apply_index(
        &mut self,
        unfinished: Option<Keyspace>,
        defined: &Arc<CollectionInfo>,
        changes: &mut ChangeSet,
    ) -> Result<()> {
        if let Some(unfinished) = unfinished {
            self.abandon_build(unfinished)?;
        }
        self.define(defined)?;
        if let Some(index) = defined.indexes.last() {
            self.log_index(EventKind::CreateIndexes, defined, index);
        }
        self.apply_all(defined, changes)
    }

    /// Logs that an index was created or dropped.
    pub(super) fn log_index(&mut self, kind: EventKind, collection: &CollectionInfo, index: &IndexInfo) {
        let records = Some(collection.records);
        self.log_definition(
            kind,
            &collection.name,
            records,
            || rawdoc! { "indexes": [IndexDescription::definition_of(index)] },
        );
    }

    /// Drops an index, or its unfinished build. Returns whether there was one. Fails with `InvalidOptions` (72) for the index on `_id`.
    pub(crate) fn drop_index(&mut self, name: &str, index: &str) -> Result<bool> {
        self.begin_call()?;
        if index == "_id_" {
            return Err(Error::invalid(Code::INVALID_OPTIONS, "the index on _id cannot be dropped"));
        }
        let Some(collection) = self.written(name)? else { return Ok(false) };
        if let Some(unfinished) = collection.building.iter().find(|held| *held.name == *index) {
            self.abandon_build(unfinished.keyspace)?;
            return Ok(true);
        }
        let Some(dropped) = collection.index(index) else { return Ok(false) };
        self.log_index(EventKind::DropIndexes, &collection, dropped);
        self.unlink(dropped.keyspace)?;
        let mut defined = CollectionInfo::clone(&collection);
        defined.indexes.retain(|held| *held.name != *index);
        self.define(&defined)?;
        Ok(true)
    }

    /// Calls `visitor` with the records after the key `after`, in key order, until it breaks. Returns the key of the record where it broke; `None` at
    /// the end.
    pub(super) fn read_records(
        &self,
        collection: &CollectionInfo,
        after: Option<&[u8]>,
        call: &CallContext,
        mut visitor: impl FnMut(&[u8], Doc<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<Option<Vec<u8>>> {
        let mut interrupt = call.interrupt.clone();
        interrupt.check()?;
        // The least key above another is that key followed by a zero byte.
        let start = after.map(|key| [key, &[0]].concat());
        let bounds = Bounds { start: start.as_deref(), end: None };
        let broken = self.view().scan(collection.records, bounds, |key, stored| {
            match interrupt.tick().and_then(|()| visitor(key, Doc::stored(stored))) {
                Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
                Ok(ControlFlow::Break(())) => ControlFlow::Break(Ok(key.to_vec())),
                Err(error) => ControlFlow::Break(Err(error)),
            }
        })?;
        broken.transpose()
    }
}

/// Returns the name of the existing index with this definition; `None` without one. Fails as [`find_same`] and [`check_id_index`] do, if only one of
/// the two is hidden, and for another index with the name `_id_`.
pub(super) fn existing(collection: &CollectionInfo, wanted: &IndexInfo, spec: &IndexSpec) -> Result<Option<String>> {
    if is_key_of_id(Doc::from(&wanted.keys)) {
        return check_id_index(spec, collection.collation.as_ref()).map(|()| Some("_id_".into()));
    }
    if &*wanted.name == "_id_" {
        let message = "the name _id_ is reserved for the index whose keys are {_id: 1}";
        return Err(Error::invalid(Code::BAD_VALUE, message).at("name"));
    }
    match find_same(&collection.indexes, wanted)? {
        Some(there) if there.hidden != wanted.hidden => {
            let message = format!("the index {} exists with another value of the option hidden", there.name);
            Err(Error::invalid(Code::INDEX_OPTIONS_CONFLICT, message).at("hidden"))
        }
        there => Ok(there.map(|there| there.name.to_string())),
    }
}

/// MongoDB's limit on the depth of a partial index's condition.
const MAX_PARTIAL_DEPTH: usize = 4;

/// Parses the definition of an index of a collection, whose collation it inherits.
pub(super) fn parse(spec: &IndexSpec, collection: &CollectionInfo) -> Result<IndexInfo> {
    let wildcard = Wildcard::parse(&spec.keys, spec.wildcard_projection.clone())?.map(Box::new);
    let pattern = match &wildcard {
        Some(_) => KeyPattern::of_no_field(),
        None => KeyPattern::parse(Doc::from(&spec.keys)).map_err(Error::from)?,
    };
    for (option, is_set) in [("unique", spec.unique), ("sparse", spec.sparse)] {
        if is_set && wildcard.is_some() {
            let message = format!("a wildcard index cannot be {option}");
            return Err(Error::invalid(Code::CANNOT_CREATE_INDEX, message).at(option));
        }
    }
    let expire_after = spec.expire_after.map(|seconds| {
        let seconds = check_expire_after(seconds).map_err(|message| cannot_expire(&message))?;
        let is_single = wildcard.is_none() && pattern.fields().len() == 1;
        match is_single {
            true => Ok(seconds),
            false => Err(cannot_expire("TTL indexes are single-field indexes, compound indexes do not support TTL")),
        }
    });
    let expire_after = expire_after.transpose()?;
    let name = spec.name.clone().unwrap_or_else(|| default_name(Doc::from(&spec.keys)));
    if name.is_empty() || name == "*" || name.contains('\0') {
        let message = format!("an index cannot have the name {name:?}");
        let code = if name == "*" { Code::BAD_VALUE } else { Code::CANNOT_CREATE_INDEX };
        return Err(Error::invalid(code, message).at("name"));
    }
    if spec.sparse && spec.partial.is_some() {
        let message = "cannot mix \"partialFilterExpression\" and \"sparse\" options";
        return Err(Error::invalid(Code::CANNOT_CREATE_INDEX, message));
    }
    let collation = match &spec.collation {
        Some(empty) if Doc::from(empty).is_empty() => {
            return Err(Error::invalid(Code::BAD_VALUE, "the collation of an index has a locale").at("collation"));
        }
        Some(collation) => Collation::parse(Doc::from(collation))?,
        None => collection.collation.clone(),
    };
    let partial = spec.partial.clone().map(|partial| Partial::parse(partial, collation.as_ref())).transpose()?;
    if partial.as_ref().is_some_and(|partial| !partial.filter.may_limit_an_index()) {
        let message = "a partial index is limited by comparisons, $in, $exists: true and $type, joined by $and and $or";
        return Err(Error::invalid(Code::CANNOT_CREATE_INDEX, message).at("partialFilterExpression"));
    }
    if spec.partial.as_ref().is_some_and(|partial| filter::depth(Doc::from(partial)) > MAX_PARTIAL_DEPTH) {
        let message = format!("partialFilterExpression depth may not exceed {MAX_PARTIAL_DEPTH}");
        return Err(Error::invalid(Code::CANNOT_CREATE_INDEX, message).at("partialFilterExpression"));
    }
    let fields = wildcard.as_ref().map_or(pattern.fields(), |wildcard| wildcard.pattern.others()).len();
    Ok(IndexInfo {
        name: name.into(),
        keyspace: Keyspace(u32::MAX),
        pattern,
        keys: spec.keys.clone(),
        unique: spec.unique,
        sparse: spec.sparse,
        hidden: spec.hidden,
        expire_after,
        partial,
        collation,
        wildcard,
        multikey: vec![0; fields],
        constant_fields: 0,
        truncated: false,
        uses: Arc::default(),
    })
}

/// Checks the seconds of a TTL index. The error is a message, because MongoDB has different codes for it.
pub(crate) fn check_expire_after(seconds: i64) -> Result<u32, String> {
    let most = i64::from(i32::MAX);
    match u32::try_from(seconds) {
        Ok(checked) if seconds <= most => Ok(checked),
        _ if seconds < 0 => Err("TTL index 'expireAfterSeconds' option cannot be less than 0".into()),
        _ => Err(format!(
            "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number than {most}"
        )),
    }
}

fn cannot_expire(message: &str) -> Error {
    Error::invalid(Code::CANNOT_CREATE_INDEX, message).at("expireAfterSeconds")
}

/// Returns MongoDB's default name, such as `a_1_b_-1`.
fn default_name(keys: Doc<'_>) -> String {
    let part = |value: Value<'_>| value.to_bson().map_or_else(String::new, |value| value.to_string());
    let parts: Vec<String> =
        keys.elements().map(|element| format!("{}_{}", element.display_name(), part(element.value))).collect();
    parts.join("_")
}

/// Fails if the index on `_id` of a collection with this collation has other options. That index always exists, and matches any name.
pub(crate) fn check_id_index(spec: &IndexSpec, collation: Option<&Collation>) -> Result<()> {
    if spec.hidden {
        return Err(hidden_id_index().at("hidden"));
    }
    let options = [
        ("unique", spec.unique),
        ("sparse", spec.sparse),
        ("expireAfterSeconds", spec.expire_after.is_some()),
        ("partialFilterExpression", spec.partial.is_some()),
        ("wildcardProjection", spec.wildcard_projection.is_some()),
    ];
    if let Some((name, _)) = options.iter().find(|(_, wanted)| *wanted) {
        return Err(not_of_id_index(name));
    }
    match &spec.collation {
        Some(own) if Collation::parse(Doc::from(own))?.as_ref() != collation => {
            let message = "the index on _id has the collation of its collection";
            Err(Error::invalid(Code::BAD_VALUE, message).at("collation"))
        }
        _ => Ok(()),
    }
}

/// Returns the error for hiding the index on `_id`.
pub(crate) fn hidden_id_index() -> Error {
    Error::invalid(Code::BAD_VALUE, "the index on _id cannot be hidden")
}

/// Returns the error for an option that the index on `_id` does not have.
pub(crate) fn not_of_id_index(name: &str) -> Error {
    let message = format!("the field '{name}' is not valid for an _id index specification");
    Error::invalid(Code::INVALID_INDEX_SPECIFICATION_OPTION, message).at(name)
}

/// Returns the existing index with this name and definition; `None` without one. Fails if only the name or only the definition is the same, or if
/// only `expireAfterSeconds` differs. Indexes on the same keys can differ in their options.
pub(super) fn find_same<'c>(indexes: &'c [Arc<IndexInfo>], wanted: &IndexInfo) -> Result<Option<&'c Arc<IndexInfo>>> {
    for there in indexes {
        // As in MongoDB, `{a: 1}` and `{a: 2}` are different keys.
        let keys = there.has_keys(Doc::from(&wanted.keys))
            && match (&there.wildcard, &wanted.wildcard) {
                (Some(selection), Some(wanted_selection)) => selection.is_same(wanted_selection),
                (there, wanted) => there.is_none() && wanted.is_none(),
            }
            && match (&there.partial, &wanted.partial) {
                (Some(there), Some(wanted)) => there.is_same(wanted),
                (there, wanted) => there.is_none() && wanted.is_none(),
            }
            && there.collation == wanted.collation;
        let same = keys && there.unique == wanted.unique && there.sparse == wanted.sparse;
        if same && there.name == wanted.name && there.expire_after != wanted.expire_after {
            let message = format!("the index {} exists with another value of expireAfterSeconds", there.name);
            return Err(conflict(Code::INDEX_OPTIONS_CONFLICT, &message));
        }
        match (there.name == wanted.name, same) {
            (true, true) => return Ok(Some(there)),
            (true, false) => {
                let message = format!("an index of the name {} exists with other keys or options", there.name);
                return Err(conflict(Code::INDEX_KEY_SPECS_CONFLICT, &message));
            }
            (false, true) => {
                let message = format!("the same index exists under the name {}", there.name);
                return Err(conflict(Code::INDEX_OPTIONS_CONFLICT, &message));
            }
            (false, false) => {}
        }
    }
    Ok(None)
}

fn conflict(code: Code, message: &str) -> Error {
    Error::new(ErrorKind::Exists, code, message)
}
