use std::time::Duration;

use bson::rawdoc;

use crate::{
    IndexDescription, IntoDocument, Result,
    api::index_build,
    api::setters::setters,
    call::{Request, Scope},
    call_context::CallContext,
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
    spec: IndexSpec,
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
        Self { request, spec: IndexSpec { keys, ..IndexSpec::default() } }
    }

    /// Creates an index with this definition.
    pub(crate) fn of_spec(spec: IndexSpec) -> Self {
        Self { request: Request::default(), spec }
    }

    /// Makes the index unique: no two documents may have the same values. A missing field counts as null.
    pub fn unique(mut self) -> Self {
        self.spec.unique = true;
        self
    }

    /// Makes the index sparse: it has no entries for documents that have none of the fields. It then serves only queries that require one of them.
    pub fn sparse(mut self) -> Self {
        self.spec.sparse = true;
        self
    }

    /// Hides the index: writes maintain it, and its uniqueness is enforced, but no query uses it until
    /// [`Collection::show_index`](crate::Collection::show_index).
    pub fn hidden(mut self) -> Self {
        self.spec.hidden = true;
        self
    }

    /// Makes it a TTL index: a document expires this long after the date in the index's only field, and
    /// [`Database::expire`](crate::Database::expire) deletes expired documents. Of an array the earliest date counts; a
    /// document without a date never expires. Fractions of a second are rounded up.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use slate_core::{Database, Index, bson::{DateTime, doc, rawdoc}};
    /// # let db = Database::open("memory:")?;
    /// let sessions = db.collection("sessions");
    /// sessions.create_index(Index::on(doc! { "seen": 1 }).expire_after(Duration::from_secs(3_600))).run()?;
    /// sessions.insert_one(&rawdoc! { "_id": 1, "seen": DateTime::from_millis(0) })?;
    /// assert_eq!(db.expire().run()?.documents, 1);
    /// # Ok::<(), slate_core::Error>(())
    /// ```
    pub fn expire_after(mut self, after: Duration) -> Self {
        let seconds = after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0));
        self.spec.expire_after = Some(i64::try_from(seconds).unwrap_or(i64::MAX));
        self
    }

    /// Makes the index partial: it contains only documents that match `filter`, and serves only queries whose filter implies this one.
    pub fn only(mut self, filter: impl IntoDocument) -> Self {
        self.spec.partial = self.request.take(filter);
        self
    }

    /// Compares strings by a collation, in MongoDB's form: in a unique index with `{ locale: "en", strength: 2 }`, "Ada"
    /// and "ADA" are the same value. Without this, the index has the collation of its collection. The index serves sorts
    /// and conditions on strings only for queries with the same collation, and other conditions for every query. It
    /// contains no strings, so it covers no query.
    pub fn collation(mut self, collation: impl IntoDocument) -> Self {
        self.spec.collation = self.request.take(collation);
        self
    }

    /// Limits the index on `$**` to some fields with their subfields, or to all but some: `{ "tags": 1, "attributes": 1
    /// }`, `{ "text": 0 }`. Required if the index has other fields: the projection must exclude these.
    pub fn wildcard_projection(mut self, projection: impl IntoDocument) -> Self {
        self.spec.wildcard_projection = self.request.take(projection);
        self
    }

    /// Sets the name; the default is made from the keys: `org_1_age_-1`.
    pub fn named(mut self, name: &str) -> Self {
        self.spec.name = Some(name.into());
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
    pub(crate) fn new(scope: Scope, collection: &str, index: Index, call: CallContext) -> Self {
        Self { scope, collection: collection.into(), index, call, progress: Box::new(|_| {}) }
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

    setters! { call: deadline, cancel }

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
    /// the state [`IndexState::Building`](crate::IndexState::Building); this call then continues the build. Within a transaction the index is
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
        let Self { scope, collection, index: Index { spec, .. }, call, mut progress } = self;
        match &scope {
            Scope::Database(database) => index_build::create(database, &collection, &spec, &mut *progress, &call),
            Scope::Snapshot(_) | Scope::Transaction(_) => {
                scope.write(&call, |writer| writer.create_index(&collection, &spec, &mut *progress, &call))
            }
        }
    }
}

crate::debug::shown! { self: CreateIndex<'p> { collection: self.collection, index: self.index } }

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
            expire_after,
            only,
            collation,
            wildcard_projection,
            multikey: _,
            state: _,
        } = description;
        Self::of_spec(IndexSpec {
            keys: keys.clone(),
            name: Some(name.clone()),
            unique: *unique,
            sparse: *sparse,
            hidden: *hidden,
            expire_after: expire_after.and_then(|after| i64::try_from(after.as_secs()).ok()),
            partial: only.clone(),
            // An index without a collation inherits that of its collection.
            collation: Some(collation.clone().unwrap_or_else(|| rawdoc! { "locale": "simple" })),
            wildcard_projection: wildcard_projection.clone(),
        })
    }
}
