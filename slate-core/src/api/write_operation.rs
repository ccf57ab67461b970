use bson::RawDocumentBuf;

use crate::{
    Hint, IntoDocument, IntoUpdate, Result,
    api::delete::delete_request,
    api::update::Change,
    call::Request,
    catalog::Catalog,
    exec::Target,
    write::{BulkOperation, UpdateKind},
};

/// One write of a [`BulkWrite`](crate::BulkWrite).
///
/// An argument that is not a valid document, or an option that the operation does not have (`sort` with `update_many`), is
/// reported as that operation's error.
#[derive(Clone, Debug)]
#[must_use = "an operation is run by `bulk_write`"]
pub struct WriteOperation {
    request: Request,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Insert(RawDocumentBuf),
    Update(Change, Target),
    Delete(Target),
}

impl WriteOperation {
    /// Inserts a document.
    pub fn insert_one(document: impl IntoDocument) -> Self {
        let mut request = Request::default();
        let document = request.take(document).unwrap_or_default();
        Self { request, kind: Kind::Insert(document) }
    }

    /// Updates the first document that matches, in the order of `_id`, as
    /// [`Collection::update_one`](crate::Collection::update_one).
    pub fn update_one(filter: impl IntoDocument, update: impl IntoUpdate) -> Self {
        Self::update(filter, update, UpdateKind::Operators, Target::One)
    }

    /// Updates every document that matches, as [`Collection::update_many`](crate::Collection::update_many).
    pub fn update_many(filter: impl IntoDocument, update: impl IntoUpdate) -> Self {
        Self::update(filter, update, UpdateKind::Operators, Target::All)
    }

    /// Replaces the first document that matches, in the order of `_id`. Its `_id` stays.
    pub fn replace_one(filter: impl IntoDocument, replacement: impl IntoDocument) -> Self {
        Self::update(filter, replacement, UpdateKind::Replacement, Target::One)
    }

    fn update(filter: impl IntoDocument, update: impl IntoUpdate, kind: UpdateKind, target: Target) -> Self {
        let mut request = Request::new(filter);
        let change = Change::new(&mut request, update, kind);
        Self { request, kind: Kind::Update(change, target) }
    }

    /// Deletes the first document that matches, in the order of `_id`.
    pub fn delete_one(filter: impl IntoDocument) -> Self {
        Self { request: Request::new(filter), kind: Kind::Delete(Target::One) }
    }

    /// Deletes every document that matches.
    pub fn delete_many(filter: impl IntoDocument) -> Self {
        Self { request: Request::new(filter), kind: Kind::Delete(Target::All) }
    }

    /// Makes an update or a replacement insert a document if none matches.
    pub fn upsert(mut self) -> Self {
        match &self.kind {
            Kind::Update(..) => self.request.upsert(),
            Kind::Insert(_) | Kind::Delete(_) => self.misplaced("upsert"),
        }
        self
    }

    /// Sets the conditions of an update on array elements, for `$[name]` in its paths.
    pub fn array_filters<F: IntoDocument>(mut self, filters: impl IntoIterator<Item = F>) -> Self {
        match &self.kind {
            Kind::Update(..) => self.request.array_filters(filters),
            Kind::Insert(_) | Kind::Delete(_) => self.misplaced("array_filters"),
        }
        self
    }

    /// Makes an update, a replacement or a deletion of one document choose the first document in this order, instead of the order
    /// of `_id`.
    pub fn sort(mut self, sort: impl IntoDocument) -> Self {
        match &self.kind {
            Kind::Update(_, Target::One) | Kind::Delete(Target::One) => self.request.sort(sort),
            Kind::Insert(_) | Kind::Update(_, Target::All) | Kind::Delete(Target::All) => self.misplaced("sort"),
        }
        self
    }

    /// Makes an update, a replacement or a deletion use this index instead of the index that the planner would choose.
    pub fn hint(mut self, hint: Hint) -> Self {
        match &self.kind {
            Kind::Update(..) | Kind::Delete(_) => self.request.hint = Some(hint),
            Kind::Insert(_) => self.misplaced("hint"),
        }
        self
    }

    fn misplaced(&mut self, option: &str) {
        let what = match &self.kind {
            Kind::Insert(_) => "an insertion",
            Kind::Update(..) => "an update of many documents",
            Kind::Delete(Target::One) => "a deletion",
            Kind::Delete(Target::All) => "a deletion of many documents",
        };
        self.request.refuse(&format!("{what} takes no '{option}'"), option);
    }

    pub(crate) fn parse(&self, catalog: &Catalog, collection: &str) -> Result<BulkOperation> {
        self.request.check()?;
        let defined = self.request.bind(catalog, collection)?;
        Ok(match &self.kind {
            Kind::Insert(document) => BulkOperation::Insert(document.clone()),
            Kind::Update(change, target) => BulkOperation::Update(change.parse(&self.request, &defined, *target)?),
            Kind::Delete(target) => BulkOperation::Delete(delete_request(&self.request, &defined, *target)?),
        })
    }
}
