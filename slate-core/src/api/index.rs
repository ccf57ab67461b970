use std::fmt;

use bson::{RawDocumentBuf, cstr, rawdoc};
use slate_query::{collation::Collation, raw::Doc};

use crate::{
    IntoDocument, Result,
    api::index_build,
    api::setters::setters,
    call::{Request, Scope},
    call_context::CallContext,
    catalog::{CollectionInfo, IndexInfo},
    command, plan,
    write::{Created, IndexSpec},
};

/// The definition of an index to create.
///
/// ```
/// use bson::doc;
/// use slate_core::Index;
///
/// let by_org = Index::on(doc! { "org": 1, "age": -1 });
/// let by_mail = Index::on(doc! { "mail": 1 }).unique().sparse();
/// let by_name = Index::on(doc! { "name": 1 }).collation(doc! { "locale": "en", "strength": 2 });
/// let open_orders = Index::on(doc! { "due": 1 }).only(doc! { "status": "open" }).named("open_orders");
/// ```
#[derive(Clone, Debug)]
#[must_use = "an index is created by `Collection::create_index`"]
pub struct Index {
    request: Request,
    keys: RawDocumentBuf,
    name: Option<String>,
    unique: bool,
    sparse: bool,
    hidden: bool,
    partial: Option<RawDocumentBuf>,
    collation: Option<RawDocumentBuf>,
    wildcard_projection: Option<RawDocumentBuf>,
}

impl Index {
    /// Creates an index on these fields, each 1 (ascending) or -1. An array is indexed by each of its elements.
    ///
    /// `{ "$**": 1 }` is a wildcard index, on every field but `_id`, and `{ "address.$**": 1 }` one on every field within
    /// `address`. It serves conditions on any one of these fields, and is larger and slower to write than an index on one field.
    /// Other fields can precede and follow the wildcard: `{ "tenant": 1, "attributes.$**": 1 }`.
    pub fn on(keys: impl IntoDocument) -> Self {
        let mut request = Request::default();
        let keys = request.take(keys).unwrap_or_default();
        Self {
            request,
            keys,
            name: None,
            unique: false,
            sparse: false,
            hidden: false,
            partial: None,
            collation: None,
            wildcard_projection: None,
        }
    }

    /// Creates an index as MongoDB describes it in `createIndexes`, in the result of `listIndexes` and in the files of
    /// `mongodump`: `{ key: { mail: 1 }, name: "mail_1", unique: true }`. [`IndexDescription::to_definition`] is the
    /// inverse.
    ///
    /// # Errors
    /// Fails as the command `createIndexes` does if the definition is not valid, or has an option that Slate does not support.
    pub fn from_definition(definition: impl IntoDocument) -> Result<Self> {
        let definition = definition.into_document()?;
        let IndexSpec { name, keys, unique, sparse, hidden, partial, collation, wildcard_projection } =
            command::parse_index(Doc::from(&definition))?;
        let request = Request::default();
        Ok(Self { request, keys, name, unique, sparse, hidden, partial, collation, wildcard_projection })
    }

    /// Rejects two documents with the same values; a missing field counts as null.
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Leaves out documents that have none of the fields. The index then serves only queries that require one of them.
    pub fn sparse(mut self) -> Self {
        self.sparse = true;
        self
    }

    /// Hides the index: writes maintain it, and its uniqueness holds, but no query uses it until
    /// [`Collection::show_index`](crate::Collection::show_index).
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// Contains only documents that match `filter`. The index then serves only queries whose filter implies this one.
    pub fn only(mut self, filter: impl IntoDocument) -> Self {
        self.partial = self.request.take(filter);
        self
    }

    /// Compares strings by a collation, in MongoDB's form: in a unique index with `{ locale: "en", strength: 2 }`, "Ada"
    /// and "ADA" are the same value. Without this, the index has the collation of its collection. The index serves sorts
    /// and conditions on strings only for queries with the same collation, and other conditions for every query. It
    /// contains no strings, so it covers no query.
    pub fn collation(mut self, collation: impl IntoDocument) -> Self {
        self.collation = self.request.take(collation);
        self
    }

    /// Limits the index on `$**` to some fields and what is within them, or to all but some: `{ "tags": 1, "attributes": 1 }`,
    /// `{ "text": 0 }`. Required if the index has other fields: the projection must leave these out.
    pub fn wildcard_projection(mut self, projection: impl IntoDocument) -> Self {
        self.wildcard_projection = self.request.take(projection);
        self
    }

    /// Sets the name; the default is made from the keys: `org_1_age_-1`.
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// The creation of an index; see [`Collection::create_index`](crate::Collection::create_index).
#[must_use = "nothing is created until `run`"]
pub struct CreateIndex<'p> {
    scope: Scope,
    collection: String,
    index: Index,
    call: CallContext,
    progress: Box<dyn FnMut(u64) + Send + 'p>,
}

impl<'p> CreateIndex<'p> {
    pub(crate) fn new(scope: Scope, collection: &str, index: Index) -> Self {
        Self { scope, collection: collection.into(), index, call: CallContext::default(), progress: Box::new(|_| {}) }
    }

    /// Calls `progress` about every thousand documents with the number of documents read.
    pub fn progress<'q>(self, progress: impl FnMut(u64) + Send + 'q) -> CreateIndex<'q> {
        CreateIndex {
            scope: self.scope,
            collection: self.collection,
            index: self.index,
            call: self.call,
            progress: Box::new(progress),
        }
    }

    setters! { call: limited, deadline, cancel }

    /// Sets the deadline and the cancel token of the call that creates the index.
    pub(crate) fn within(mut self, call: &CallContext) -> Self {
        self.call = call.clone();
        self
    }

    /// Creates the index and returns its name.
    ///
    /// Writers of the collection continue, and maintain the index from the start of the build: a write that violates a
    /// unique index is rejected even while the index is being built. A large collection is read in several transactions
    /// that are not synced to the device. If the documents violate the index, it is dropped. A crash leaves an index in
    /// the state [`IndexState::Building`]; this call then continues the build. Within a transaction the index is
    /// created in that transaction and conflicts with every writer of the collection.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`](crate::ErrorKind::Exists) with code 85 or 86 if an index with the same keys or name has other
    /// options; [`ErrorKind::DuplicateKey`](crate::ErrorKind::DuplicateKey) if documents violate a unique index.
    pub fn run(self) -> Result<String> {
        Ok(self.run_and_tell()?.0)
    }

    /// Creates the index; returns its name and whether it is new.
    pub(crate) fn run_and_tell(self) -> Result<(String, Created)> {
        self.index.request.check()?;
        let spec = IndexSpec {
            name: self.index.name,
            keys: self.index.keys,
            unique: self.index.unique,
            sparse: self.index.sparse,
            hidden: self.index.hidden,
            partial: self.index.partial,
            collation: self.index.collation,
            wildcard_projection: self.index.wildcard_projection,
        };
        let Self { scope, collection, call, mut progress, .. } = self;
        match &scope {
            Scope::Database(database) => index_build::create(database, &collection, &spec, &mut *progress, &call),
            Scope::Snapshot(_) | Scope::Transaction(_) => {
                scope.write(&call, |writer| writer.create_index(&collection, &spec, &mut *progress, &call))
            }
        }
    }
}

impl fmt::Debug for CreateIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateIndex").field("collection", &self.collection).field("index", &self.index).finish()
    }
}

/// The description of an existing index.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IndexDescription {
    /// Its name.
    pub name: String,
    /// Its fields and their directions.
    pub keys: RawDocumentBuf,
    /// Whether two documents with the same values are rejected.
    pub unique: bool,
    /// Whether documents without any of the fields are left out.
    pub sparse: bool,
    /// Whether no query uses it; see [`Collection::hide_index`](crate::Collection::hide_index).
    pub hidden: bool,
    /// The filter of a partial index.
    pub only: Option<RawDocumentBuf>,
    /// How it compares strings, with all options; `None`: by their bytes.
    pub collation: Option<RawDocumentBuf>,
    /// The fields that a wildcard index is limited to; see [`Index::wildcard_projection`].
    pub wildcard_projection: Option<RawDocumentBuf>,
    /// Whether any of its fields has contained an array.
    pub multikey: bool,
    /// Whether queries can use it.
    pub state: IndexState,
}

/// Converts a description to the definition that creates an index like it, again or on another collection.
impl From<&IndexDescription> for Index {
    fn from(description: &IndexDescription) -> Self {
        // Names every field, so that a new option is not forgotten here.
        let IndexDescription {
            name,
            keys,
            unique,
            sparse,
            hidden,
            only,
            collation,
            wildcard_projection,
            multikey: _,
            state: _,
        } = description;
        Self {
            request: Request::default(),
            keys: keys.clone(),
            name: Some(name.clone()),
            unique: *unique,
            sparse: *sparse,
            hidden: *hidden,
            partial: only.clone(),
            // An index without a collation inherits that of its collection.
            collation: Some(collation.clone().unwrap_or_else(|| rawdoc! { "locale": "simple" })),
            wildcard_projection: wildcard_projection.clone(),
        }
    }
}

/// Whether an index can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// It is complete, and queries use it.
    Ready,
    /// It is being built, or a crash interrupted the build: writers maintain it, queries do not use it. Creating the same
    /// index again finishes it, as does [`Database::resume_index_builds`](crate::Database::resume_index_builds).
    Building,
}

impl IndexDescription {
    /// Returns the index as MongoDB describes it in the result of `listIndexes`; [`Index::from_definition`] is the inverse.
    pub fn to_definition(&self) -> RawDocumentBuf {
        // Names every field, so that a new option is not forgotten here.
        let Self { name, keys, unique, sparse, hidden, only, collation, wildcard_projection, multikey: _, state: _ } =
            self;
        let mut definition = rawdoc! { "v": 2, "key": keys.clone(), "name": name.as_str() };
        for (option, is_set) in [(cstr!("unique"), unique), (cstr!("sparse"), sparse), (cstr!("hidden"), hidden)] {
            if *is_set {
                definition.append(option, true);
            }
        }
        for (option, document) in [
            (cstr!("partialFilterExpression"), only),
            (cstr!("wildcardProjection"), wildcard_projection),
            (cstr!("collation"), collation),
        ] {
            if let Some(document) = document {
                definition.append(option, document.clone());
            }
        }
        definition
    }

    /// Returns every index of a collection.
    pub(crate) fn all(collection: &CollectionInfo) -> Vec<Self> {
        let ready = collection.indexes.iter().map(|index| Self::of(index, IndexState::Ready));
        let building = collection.building.iter().map(|index| Self::of(index, IndexState::Building));
        ready.chain(building).collect()
    }

    fn of(index: &IndexInfo, state: IndexState) -> Self {
        Self {
            name: index.name.to_string(),
            keys: index.keys.clone(),
            unique: index.unique,
            sparse: index.sparse,
            hidden: index.hidden,
            only: index.partial.as_ref().map(|partial| partial.document.clone()),
            collation: index.collation.as_ref().map(Collation::to_document),
            wildcard_projection: index.wildcard.as_ref().and_then(|wildcard| wildcard.projection.clone()),
            multikey: index.is_multikey(),
            state,
        }
    }
}

/// The access path that a query must use. A sparse or partial index restricts the query to the documents of the index.
#[derive(Clone, Debug)]
pub enum Hint {
    /// A scan in the order of `_id`.
    Forward,
    /// A scan in descending order of `_id`.
    Backward,
    /// The index of this name; `_id_` is the one on `_id`.
    Name(String),
    /// The only index on exactly these keys. If several indexes have them, the call fails with `IndexNotFound` (27).
    Keys(RawDocumentBuf),
}

impl From<Hint> for plan::Hint {
    fn from(hint: Hint) -> Self {
        use slate_query::pattern::Direction;
        match hint {
            Hint::Forward => Self::Natural(Direction::Ascending),
            Hint::Backward => Self::Natural(Direction::Descending),
            Hint::Name(name) => Self::Name(name),
            Hint::Keys(keys) => Self::Keys(keys),
        }
    }
}
