//! The calls of a history on one collection or view, and their execution.

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{
    Collection, CollectionOptions, Error, Hint, Index, RenameTarget, ReturnDocument, UpdateModifications,
    ValidationAction, ValidationLevel, Validator, View, WriteOperation,
};

use crate::common::{
    Refusal,
    random::{RandomIndex, collation},
    raw, refusal, rows,
};

pub(crate) type Documents = Collection<RawDocumentBuf>;

/// The stored names of what the calls read and write: three in one database, and one in another.
pub(crate) const NAMES: [&str; 4] = ["x", "y", "v", "$shop.x"];

/// Returns the database and the name in it of a stored name.
pub(crate) fn split(stored: &str) -> (&str, &str) {
    stored.strip_prefix('$').and_then(|full| full.split_once('.')).unwrap_or(("test", stored))
}

/// Returns the name to which a collection of a database is renamed: a name without `$` would be one of the same database, and the other
/// database has only one that is modelled.
pub(crate) fn renamed(database: &str, to: &'static str) -> &'static str {
    if database == "test" { to } else { NAMES[3] }
}

/// Whether the validator of a collection applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    Validated,
    Bypassed,
}

/// How an insertion of several documents goes on after a refused one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    AllOrNothing,
    Ordered,
    Unordered,
}

/// A validator.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) filter: Document,
    pub(crate) level: ValidationLevel,
    pub(crate) action: ValidationAction,
}

/// The definition of a view.
#[derive(Clone, Debug)]
pub(crate) struct ViewOf {
    pub(crate) on: &'static str,
    pub(crate) pipeline: Vec<Document>,
}

/// What is created.
#[derive(Clone, Debug)]
pub(crate) enum Creation {
    Collection { is_collated: bool, rules: Option<Rules>, keeps_images: bool },
    View { view: ViewOf, is_collated: bool },
}

/// The last stage of a pipeline that writes.
#[derive(Clone, Debug)]
pub(crate) enum Sink {
    Out(&'static str),
    Merge { into: &'static str, matched: &'static str, unmatched: &'static str },
}

impl Sink {
    fn stage(&self) -> Document {
        let place = |stored| {
            let (database, name) = split(stored);
            doc! { "db": database, "coll": name }
        };
        match self {
            Self::Out(into) => doc! { "$out": place(into) },
            Self::Merge { into, matched, unmatched } => {
                doc! { "$merge": { "into": place(into), "whenMatched": *matched, "whenNotMatched": *unmatched } }
            }
        }
    }
}

/// A read, whose rows the model predicts.
#[derive(Clone, Debug)]
pub(crate) enum Read {
    Find { filter: Document, sort: Option<Document>, limit: Option<u64> },
    FindOne { filter: Document, sort: Document },
    ById(Bson),
    Count(Document),
    Estimate,
    Distinct { path: &'static str, filter: Document },
    Lookup { filter: Document, from: &'static str, foreign: &'static str },
    UnionWith { filter: Document, with: &'static str },
}

/// One call on one collection or view.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Insert {
        documents: Vec<Document>,
        mode: Mode,
        checks: Checks,
    },
    Update {
        filter: Document,
        update: UpdateModifications,
        many: bool,
        upsert: bool,
        checks: Checks,
    },
    Replace {
        filter: Document,
        replacement: Document,
        upsert: bool,
    },
    Delete {
        filter: Document,
        many: bool,
    },
    FindOneAndUpdate {
        filter: Document,
        update: UpdateModifications,
        sort: Document,
        returns: ReturnDocument,
    },
    FindOneAndReplace {
        filter: Document,
        replacement: Document,
        sort: Document,
    },
    FindOneAndDelete {
        filter: Document,
        sort: Document,
    },
    UpsertMany(Vec<Document>),
    MergeMany(Vec<Document>),
    /// Insertions of one document, updates, replacements and deletions.
    BulkWrite {
        operations: Vec<Call>,
        ordered: bool,
    },
    /// Writes the documents that match into a collection.
    Write {
        filter: Document,
        sink: Sink,
    },
    Create(Creation),
    SetView(ViewOf),
    SetValidator(Option<Rules>),
    KeepImages(bool),
    Rename {
        to: &'static str,
        target: RenameTarget,
    },
    HideIndex(usize, bool),
    CreateIndex(Box<RandomIndex>),
    /// Creates a TTL index on `t`.
    CreateTtl {
        seconds: u32,
        is_hidden: bool,
        is_partial: bool,
    },
    DropIndex(usize),
    DropCollection,
    Read(Read),
}

/// What a call has returned, as far as the model predicts it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// Nothing that is predicted.
    Other(String),
    Counts(Vec<u64>),
    Rows(Vec<RawDocumentBuf>),
    /// Some of the writes were refused.
    Partly {
        refused: Vec<(usize, Refusal)>,
        counts: Vec<u64>,
    },
}

pub(crate) type Outcome = Result<Answer, Refusal>;

impl Rules {
    pub(crate) fn validator(&self) -> Validator {
        Validator::new(&self.filter).level(self.level).action(self.action)
    }
}

impl ViewOf {
    fn view(&self) -> View {
        View::new(self.on, &self.pipeline)
    }
}

impl Creation {
    fn options(&self) -> CollectionOptions {
        let collated = |options: CollectionOptions, is_collated: bool| {
            if is_collated { options.collation(collation()) } else { options }
        };
        match self {
            Self::Collection { is_collated, rules, keeps_images } => {
                let mut options = collated(CollectionOptions::new(), *is_collated);
                if let Some(rules) = rules {
                    options = options.validator(&rules.validator());
                }
                if *keeps_images { options.keep_images() } else { options }
            }
            Self::View { view, is_collated } => collated(CollectionOptions::new(), *is_collated).view(&view.view()),
        }
    }
}

/// The filter of the partial TTL index.
pub(crate) fn ttl_condition() -> Document {
    doc! { "a": { "$exists": true } }
}

fn ttl_index(seconds: u32, is_hidden: bool, is_partial: bool) -> Index {
    let index = Index::on(doc! { "t": 1 }).expire_after(std::time::Duration::from_secs(seconds.into()));
    let index = if is_partial { index.only(ttl_condition()) } else { index };
    if is_hidden { index.hidden() } else { index }
}

/// Returns an operation of a bulk write.
pub(crate) fn operation(call: &Call) -> WriteOperation {
    let upserting = |operation: WriteOperation, upsert: bool| if upsert { operation.upsert() } else { operation };
    match call {
        Call::Insert { documents, .. } => WriteOperation::insert_one(&documents[0]),
        Call::Update { filter, update, many: true, upsert, .. } => {
            upserting(WriteOperation::update_many(filter, update.clone()), *upsert)
        }
        Call::Update { filter, update, upsert, .. } => {
            upserting(WriteOperation::update_one(filter, update.clone()), *upsert)
        }
        Call::Replace { filter, replacement, upsert } => {
            upserting(WriteOperation::replace_one(filter, replacement), *upsert)
        }
        Call::Delete { filter, many: true } => WriteOperation::delete_many(filter),
        Call::Delete { filter, .. } => WriteOperation::delete_one(filter),
        other => panic!("a bulk write has no operation {other:?}"),
    }
}

pub(crate) fn bulk_answer(result: &slate_core::BulkWriteResult) -> Answer {
    let refused = result.errors.iter().map(|failed| (failed.index, refusal(&failed.error))).collect();
    let (inserted, upserted) = (result.inserted_ids.len() as u64, result.upserted_ids.len() as u64);
    Answer::Partly { refused, counts: vec![inserted, result.matched, result.modified, upserted, result.deleted] }
}

fn row(found: Option<RawDocumentBuf>) -> Answer {
    Answer::Rows(found.into_iter().collect())
}

/// Returns the name of the index at this place, in the order of names.
fn index_at(collection: &Documents, place: usize) -> Result<String, Error> {
    let mut names: Vec<String> = collection.list_indexes()?.into_iter().map(|index| index.name).collect();
    names.sort();
    Ok(names.into_iter().nth(place).unwrap_or_else(|| "none".into()))
}

pub(crate) fn run(collection: &Documents, call: &Call) -> Outcome {
    outcome(collection, call).map_err(|error| refusal(&error))
}

fn outcome(collection: &Documents, call: &Call) -> Result<Answer, Error> {
    let count = |counted: bool| Answer::Counts(vec![counted.into()]);
    Ok(match call {
        Call::Insert { documents, mode, checks } => {
            let documents: Vec<RawDocumentBuf> = documents.iter().map(raw).collect();
            let insert = collection.insert_many(&documents).bypass_document_validation(*checks == Checks::Bypassed);
            let insert = match mode {
                Mode::AllOrNothing => insert.all_or_nothing(),
                Mode::Ordered => insert.ordered(true),
                Mode::Unordered => insert.ordered(false),
            };
            let result = insert.run()?;
            let refused = result.errors.iter().map(|failed| (failed.index, refusal(&failed.error))).collect();
            Answer::Partly { refused, counts: vec![result.inserted_ids.len() as u64] }
        }
        Call::Update { filter, update, many, upsert, checks } => {
            let update = if *many {
                collection.update_many(filter, update.clone())
            } else {
                collection.update_one(filter, update.clone())
            };
            let update = if *upsert { update.upsert() } else { update };
            let result = update.bypass_document_validation(*checks == Checks::Bypassed).run()?;
            Answer::Counts(vec![result.matched, result.modified, result.upserted_id.is_some().into()])
        }
        Call::Replace { filter, replacement, upsert } => {
            let replace = collection.replace_one(filter, &raw(replacement));
            let result = if *upsert { replace.upsert() } else { replace }.run()?;
            Answer::Counts(vec![result.matched, result.modified, result.upserted_id.is_some().into()])
        }
        Call::Delete { filter, many } => {
            let delete = if *many { collection.delete_many(filter) } else { collection.delete_one(filter) };
            Answer::Counts(vec![delete.run()?])
        }
        Call::FindOneAndUpdate { filter, update, sort, returns } => {
            row(collection.find_one_and_update(filter, update.clone()).sort(sort).return_document(*returns).run()?)
        }
        Call::FindOneAndReplace { filter, replacement, sort } => row(collection
            .find_one_and_replace(filter, &raw(replacement))
            .sort(sort)
            .return_document(ReturnDocument::After)
            .run()?),
        Call::FindOneAndDelete { filter, sort } => row(collection.find_one_and_delete(filter).sort(sort).run()?),
        Call::UpsertMany(documents) => {
            let documents: Vec<RawDocumentBuf> = documents.iter().map(raw).collect();
            let result = collection.upsert_many(&documents)?;
            Answer::Counts(vec![result.matched, result.modified, result.inserted])
        }
        Call::MergeMany(documents) => {
            let result = collection.merge_many(documents)?;
            Answer::Counts(vec![result.matched, result.modified, result.inserted])
        }
        Call::BulkWrite { operations, ordered } => {
            bulk_answer(&collection.bulk_write(operations.iter().map(operation)).ordered(*ordered).run()?)
        }
        Call::Write { filter, sink } => {
            let stages = [doc! { "$match": filter }, doc! { "$sort": { "_id": 1 } }, sink.stage()];
            Answer::Counts(vec![collection.aggregate(stages).run()?.count() as u64])
        }
        Call::Create(creation) => {
            collection.create_with(&creation.options())?;
            Answer::Counts(Vec::new())
        }
        Call::SetView(view) => {
            collection.set_view(&view.view())?;
            Answer::Counts(Vec::new())
        }
        Call::SetValidator(rules) => {
            collection.set_validator(rules.as_ref().map(Rules::validator))?;
            Answer::Counts(Vec::new())
        }
        Call::KeepImages(is_kept) => {
            collection.keep_images(*is_kept)?;
            Answer::Counts(Vec::new())
        }
        Call::Rename { to, target } => {
            collection.rename(renamed(collection.database_name(), to), *target)?;
            Answer::Counts(Vec::new())
        }
        Call::HideIndex(place, true) => count(collection.hide_index(&index_at(collection, *place)?)?),
        Call::HideIndex(place, false) => count(collection.show_index(&index_at(collection, *place)?)?),
        Call::CreateIndex(index) => Answer::Other(collection.create_index(index.spec()).run()?),
        Call::CreateTtl { seconds, is_hidden, is_partial } => {
            Answer::Other(collection.create_index(ttl_index(*seconds, *is_hidden, *is_partial)).run()?)
        }
        Call::DropIndex(place) => count(collection.drop_index(&index_at(collection, *place)?)?),
        Call::DropCollection => count(collection.drop()?),
        Call::Read(read) => answer(collection, read)?,
    })
}

fn answer(collection: &Documents, read: &Read) -> Result<Answer, Error> {
    Ok(match read {
        Read::Find { filter, sort, limit } => {
            let mut find = collection.find(filter);
            if let Some(sort) = sort {
                find = find.sort(sort);
            }
            if let Some(limit) = limit {
                find = find.limit(*limit);
            }
            Answer::Rows(find.collect()?)
        }
        Read::FindOne { filter, sort } => row(collection.find_one(filter).sort(sort).run()?),
        Read::ById(id) => row(collection.find_by_id(id.clone())?),
        Read::Count(filter) => Answer::Counts(vec![collection.count_documents(filter).run()?]),
        Read::Estimate => Answer::Counts(vec![collection.estimated_document_count()?]),
        Read::Distinct { path, filter } => {
            let values = collection.distinct(path, filter).run()?;
            Answer::Rows(values.into_iter().map(|value| raw(&doc! { "v": value })).collect())
        }
        Read::Lookup { filter, from, foreign } => {
            let lookup = doc! { "from": *from, "localField": "_id", "foreignField": *foreign, "as": "l" };
            let stages = [doc! { "$match": filter }, doc! { "$lookup": lookup }];
            Answer::Rows(collection.aggregate(stages).with_type::<RawDocumentBuf>().collect()?)
        }
        Read::UnionWith { filter, with } => {
            let stages = [doc! { "$unionWith": *with }, doc! { "$match": filter }];
            Answer::Rows(collection.aggregate(stages).with_type::<RawDocumentBuf>().collect()?)
        }
    })
}

/// Returns all documents in the order of `_id`, those of a view in any order.
pub(crate) fn all(collection: &slate_core::ReadCollection<RawDocumentBuf>) -> Result<Vec<RawDocumentBuf>, Refusal> {
    rows(collection.find(doc! {}).hint(Hint::Forward))
}
