use std::{fmt, time::Duration};

use bson::RawDocumentBuf;

use crate::{
    CancelToken, IntoDocument, Result,
    api::index_build,
    catalog::{CollectionInfo, IndexInfo},
    interrupt::Interrupt,
    operation::request::Request,
    operation::scope::Scope,
    plan,
    write::IndexSpec,
};

/// An index to be created.
///
/// ```
/// use bson::doc;
/// use slate_core::Index;
///
/// let by_org = Index::on(doc! { "org": 1, "age": -1 });
/// let by_mail = Index::on(doc! { "mail": 1 }).unique().sparse();
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
    partial: Option<RawDocumentBuf>,
}

impl Index {
    /// Over these fields, each 1 (lowest first) or -1. Arrays are indexed by each of their elements.
    pub fn on(keys: impl IntoDocument) -> Self {
        let mut request = Request::default();
        let keys = request.take(keys).unwrap_or_default();
        Self { request, keys, name: None, unique: false, sparse: false, partial: None }
    }

    /// No two documents may have the same values; a missing field counts as null.
    pub fn unique(mut self) -> Self {
        self.unique = true;
        self
    }

    /// Leaves out documents that have none of the fields. It then serves only questions that ask for one of them.
    pub fn sparse(mut self) -> Self {
        self.sparse = true;
        self
    }

    /// Holds only documents that match `filter`. It then serves only questions whose filter implies this one.
    pub fn only(mut self, filter: impl IntoDocument) -> Self {
        self.partial = self.request.take(filter);
        self
    }

    /// Names the index; otherwise it is named after its keys, `org_1_age_-1`.
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// The creation of an index; see [`Collection::build_index`](crate::Collection::build_index).
#[must_use = "nothing is created until `run`"]
pub struct CreateIndex<'p> {
    scope: Scope,
    collection: String,
    index: Index,
    interrupt: Interrupt,
    progress: Box<dyn FnMut(u64) + 'p>,
}

impl<'p> CreateIndex<'p> {
    pub(crate) fn new(scope: Scope, collection: &str, index: Index) -> Self {
        Self {
            scope,
            collection: collection.into(),
            index,
            interrupt: Interrupt::default(),
            progress: Box::new(|_| {}),
        }
    }

    /// Tells, every thousand or so documents, how many have been read.
    pub fn progress<'q>(self, progress: impl FnMut(u64) + 'q) -> CreateIndex<'q> {
        CreateIndex {
            scope: self.scope,
            collection: self.collection,
            index: self.index,
            interrupt: self.interrupt,
            progress: Box::new(progress),
        }
    }

    /// Ends, with no index created, when it is not done within this time from now.
    pub fn deadline(mut self, within: Duration) -> Self {
        self.interrupt.within(within);
        self
    }

    /// Ends, with no index created, when the token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.interrupt.by(token);
        self
    }

    /// Creates the index and gives back its name.
    ///
    /// Writers of the collection go on meanwhile, and from its beginning keep the index's entries for what they write (so
    /// that one who breaks a unique index is refused before it is ready). Larger collections are read in transactions of
    /// a thousand documents, a commit that does not wait for the device each. What the documents break leaves nothing
    /// behind; a crash leaves an index of [`IndexState::Building`], which this call finishes from where it stopped. Within a
    /// transaction the index is made in that transaction, and conflicts with every writer of the collection.
    ///
    /// # Errors
    /// As [`Collection::create_index`](crate::Collection::create_index).
    pub fn run(self) -> Result<String> {
        Ok(self.run_and_tell()?.0)
    }

    /// Creates the index; its name, and whether it had not been there.
    pub(crate) fn run_and_tell(self) -> Result<(String, bool)> {
        self.index.request.check()?;
        let spec = IndexSpec {
            name: self.index.name,
            keys: self.index.keys,
            unique: self.index.unique,
            sparse: self.index.sparse,
            partial: self.index.partial,
        };
        let Self { scope, collection, interrupt, mut progress, .. } = self;
        match &scope {
            Scope::Database(database) => index_build::create(database, &collection, &spec, &interrupt, &mut *progress),
            Scope::Snapshot(_) | Scope::Transaction(_) => {
                scope.write(|writer| writer.create_index(&collection, &spec, &interrupt, &mut *progress))
            }
        }
    }
}

impl fmt::Debug for CreateIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateIndex").field("collection", &self.collection).field("index", &self.index).finish()
    }
}

/// An index that is there.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct IndexDescription {
    /// Its name.
    pub name: String,
    /// Its fields and their directions.
    pub keys: RawDocumentBuf,
    /// Whether no two documents may have the same values.
    pub unique: bool,
    /// Whether documents without any of the fields are left out.
    pub sparse: bool,
    /// The condition for a document to be in it.
    pub only: Option<RawDocumentBuf>,
    /// Whether any of its fields has met an array.
    pub multikey: bool,
    /// Whether questions are answered by it yet.
    pub state: IndexState,
}

/// Whether an index can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// It holds every entry it should.
    Ready,
    /// It is being built, or its building was broken off by a crash: writers keep its entries, no question is answered by
    /// it. Creating the same index again finishes it, as does
    /// [`Database::resume_index_builds`](crate::Database::resume_index_builds); dropping it gives it up.
    Building,
}

impl IndexDescription {
    /// Every index of a collection.
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
            only: index.partial.as_ref().map(|partial| partial.document.clone()),
            multikey: index.is_multikey(),
            state,
        }
    }
}

/// The way to the documents that a caller wants taken.
#[derive(Clone, Debug)]
pub enum Hint {
    /// The records in the order of `_id`.
    Forward,
    /// The records against the order of `_id`.
    Backward,
    /// The index of this name; `_id_` is the one on `_id`.
    Name(String),
    /// The index over exactly these keys.
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
