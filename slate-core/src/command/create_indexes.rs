use bson::RawDocumentBuf;
use slate_query::{
    Code,
    number::Number,
    raw::{Doc, Kind, Value},
    wildcard::WildcardPattern,
};

use super::{
    call::Call,
    concern::Concerns,
    fields::{Fields, missing, owned},
    number,
    reply::Reply,
};
use crate::{
    Error, Index, IntoDocument, Result,
    api::index_build,
    call::{Scope, Writer},
    catalog::is_key_of_id,
    write::{self, IndexSpec},
};

/// Options of index kinds that Slate does not have, and options that would change the effect of an index.
const REFUSED: [&str; 12] = [
    "2dsphereIndexVersion",
    "bits",
    "bucketSize",
    "clustered",
    "columnstoreProjection",
    "default_language",
    "language_override",
    "max",
    "min",
    "prepareUnique",
    "textIndexVersion",
    "weights",
];

/// The options that the index on `_id` does not have.
const NOT_OF_ID: [&str; 8] = [
    "background",
    "dropDups",
    "expireAfterSeconds",
    "partialFilterExpression",
    "sparse",
    "storageEngine",
    "unique",
    "wildcardProjection",
];

/// `{createIndexes: collection, indexes: [{key, name, unique, sparse, partialFilterExpression, wildcardProjection}, …]}`: creates all of the indexes
/// or none (with the exceptions of `index_build::create_all`). Writers of the collection continue meanwhile, except in a transaction.
pub(super) fn run(mut call: Call<'_>) -> Result<RawDocumentBuf> {
    let collection = call.collection()?;
    let fields = &mut call.fields;
    let indexes = fields.objects("indexes")?;
    let ignore_unknown = fields.boolean("ignoreUnknownIndexOptions")?.unwrap_or_default();
    // The number of nodes that must have built the index. A Slate database is a single node.
    fields.any("commitQuorum");
    let common = call.common(Concerns::Write)?;
    call.fields.finish()?;
    let indexes = indexes.ok_or_else(|| missing("createIndexes", "indexes"))?;
    if indexes.is_empty() {
        return Err(Error::invalid(Code::BAD_VALUE, "Must specify at least one index to create").at("indexes"));
    }
    let unknown = if ignore_unknown { Unknown::Ignored } else { Unknown::Refused };
    let specs: Vec<IndexSpec> = indexes.into_iter().map(|index| parse(index, unknown)).collect::<Result<_>>()?;

    let (before, after) = match call.at.scope {
        Scope::Database(database) => index_build::create_all(database, collection, &specs, &common.call)?,
        Scope::Snapshot(_) | Scope::Transaction(_) => call.at.scope.write(&common.call, |writer| {
            let indexes = |writer: &mut dyn Writer| {
                Ok::<_, Error>(writer.collection(collection)?.map(|there| there.indexes.len()))
            };
            let before = indexes(writer)?;
            for spec in &specs {
                writer.create_index(collection, spec, &mut |_| {}, &common.call)?;
            }
            Ok((before, indexes(writer)?.unwrap_or_default()))
        })?,
    };
    let mut reply = Reply::default();
    // The counts include the index on `_id`.
    reply.count("numIndexesBefore", before.unwrap_or_default() + 1);
    reply.count("numIndexesAfter", after + 1);
    reply.boolean("createdCollectionAutomatically", before.is_none());
    if before == Some(after) {
        reply.text("note", "all indexes already exist");
    }
    reply.finish()
}

impl Index {
    /// Creates an index from MongoDB's definition, as in `createIndexes`, in the result of `listIndexes` and in the files of `mongodump`: `{ key: {
    /// mail: 1 }, name: "mail_1", unique: true }`. [`IndexDescription::to_definition`](crate::IndexDescription::to_definition) is the inverse.
    ///
    /// # Errors
    /// Fails as the command `createIndexes` does if the definition is not valid, or has an option that Slate does not support.
    pub fn from_definition(definition: impl IntoDocument) -> Result<Self> {
        parse(Doc::from(&definition.into_document()?), Unknown::Refused).map(Self::of_spec)
    }
}

/// The treatment of an index option that is unknown. Those in [`REFUSED`] always fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    Refused,
    Ignored,
}

/// Parses the definition of an index.
pub(super) fn parse(index: Doc<'_>, unknown: Unknown) -> Result<IndexSpec> {
    let mut fields = Fields::read("createIndexes.indexes", index)?;
    let present: Vec<&str> = fields.names().collect();
    let keys = fields.object_not_null("key")?;
    let name = fields.string("name")?;
    let unique = fields.truth("unique")?.unwrap_or_default();
    let sparse = fields.truth("sparse")?.unwrap_or_default();
    let hidden = fields.truth("hidden")?.unwrap_or_default();
    let expire_after = fields.any("expireAfterSeconds").map(expire_after).transpose()?;
    let partial = fields.object_not_null("partialFilterExpression")?;
    let collation = fields.object_not_null("collation")?;
    let projection = fields.object_not_null("wildcardProjection")?;
    let version = check_version(&mut fields, keys)?;
    if version == Some(1) && collation.is_some() {
        let message = "an index with v: 1 cannot have a collation";
        return Err(Error::invalid(Code::CANNOT_CREATE_INDEX, message).at("collation"));
    }
    // MongoDB accepts and ignores these.
    for name in ["background", "dropDups", "ns"] {
        fields.any(name);
    }
    fields.refuse(&REFUSED)?;
    fields.refuse_filled(&["storageEngine"])?;
    if unknown == Unknown::Refused
        && let Some(name) = fields.names().next()
    {
        let message = format!("The field '{name}' is not valid for an index specification");
        return Err(Error::invalid(Code::INVALID_INDEX_SPECIFICATION_OPTION, message).at(name));
    }
    let required = |name: &str| {
        let message = format!("The '{name}' field is a required property of an index specification");
        Error::invalid(Code::FAILED_TO_PARSE, message).at(name)
    };
    let keys = keys.ok_or_else(|| required("key"))?;
    let name = name.ok_or_else(|| required("name"))?;
    if is_key_of_id(keys) {
        check_id_options(&present)?;
    }
    Ok(IndexSpec {
        name: Some(name.into()),
        keys: owned(keys)?,
        unique,
        sparse,
        hidden,
        expire_after,
        partial: partial.map(owned).transpose()?,
        collation: collation.map(owned).transpose()?,
        wildcard_projection: projection.map(owned).transpose()?,
    })
}

/// Reads the seconds of a TTL index, a number of any type.
fn expire_after(value: Value<'_>) -> Result<i64> {
    check_expiry(value, Code::CANNOT_CREATE_INDEX)?;
    number::to_i64(value).ok_or_else(|| {
        let message = format!(
            "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{}'",
            value.kind().alias()
        );
        Error::invalid(Code::CANNOT_CREATE_INDEX, message).at("expireAfterSeconds")
    })
}

/// Fails for NaN, which would become 0: every document with a date in the past would be deleted at once.
pub(super) fn check_expiry(value: Value<'_>, code: Code) -> Result<()> {
    if Number::of(value).is_some_and(Number::is_nan) {
        let message = "TTL index 'expireAfterSeconds' option must not be NaN";
        return Err(Error::invalid(code, message).at("expireAfterSeconds"));
    }
    Ok(())
}

/// Refuses the options that the index on `_id` does not have, whatever their values.
fn check_id_options(present: &[&str]) -> Result<()> {
    if present.contains(&"hidden") {
        return Err(write::hidden_id_index().at("hidden"));
    }
    match present.iter().find(|name| NOT_OF_ID.contains(name)) {
        Some(name) => Err(write::not_of_id_index(name)),
        None => Ok(()),
    }
}

/// Returns the version of the index format, `None` if none is given: 1 or 2, for a wildcard index 2. Slate has one format for both.
fn check_version(fields: &mut Fields<'_>, keys: Option<Doc<'_>>) -> Result<Option<i64>> {
    let Some(version) = fields.value("v") else { return Ok(None) };
    let number = Number::of(version).ok_or_else(|| fields.mistyped("v", version, "number"))?;
    let oldest = if keys.is_some_and(WildcardPattern::is_key_of) { 2 } else { 1 };
    let known = number.to_i64().filter(|known| (oldest..=2).contains(known));
    if known.is_some() && version.kind() != Kind::Decimal128 {
        return Ok(known);
    }
    Err(Error::invalid(Code::CANNOT_CREATE_INDEX, "the version of an index is 1 or 2, that of a wildcard index 2")
        .at("v"))
}
