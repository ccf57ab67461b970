//! A model of the database without a store: for each collection or view a list of documents and a map of options, which the calls change
//! one after the other. It uses the language (filters, updates, sorts) and neither plans nor indexes, transactions or files.
//!
//! ```text
//! Model ── name ── Namespace   options     { validator, validationLevel, collation, viewOn, … }
//!                              indexes     name ── { key, unique, hidden, expireAfterSeconds, … }
//!                              documents   in the order of `_id`
//! ```

#[path = "model/definitions.rs"]
mod definitions;
#[path = "model/expiry.rs"]
mod expiry;
#[path = "model/interleaved.rs"]
mod interleaved;
#[path = "model/reads.rs"]
mod reads;
#[path = "model/writes.rs"]
mod writes;

use std::{collections::BTreeMap, fmt};

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::Database;
use slate_query::{
    collation::Collation,
    expression::Bindings,
    filter::Filter,
    raw::{Doc, Value},
};

use super::call::{self, Answer, Call, NAMES, Outcome, split};
use crate::common::{Refusal, raw};

pub(crate) use interleaved::merged;

/// The options of a collection, a view or an index, by their names.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Options(RawDocumentBuf);

/// A collection or a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Namespace {
    options: Options,
    indexes: BTreeMap<String, Options>,
    documents: Vec<RawDocumentBuf>,
}

/// All collections and views.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Model(BTreeMap<&'static str, Namespace>);

/// The states that a call can leave, with what it then returns. More than one is possible where the order of equal documents is not
/// defined. `None`: it must fail.
type Effects = Option<Vec<(Model, Answer)>>;

impl Options {
    fn of(fields: Document) -> Self {
        let sorted: BTreeMap<String, Bson> = fields.into_iter().collect();
        Self(raw(&sorted.into_iter().collect()))
    }

    fn fields(&self) -> Document {
        Document::try_from(self.0.as_ref()).unwrap()
    }

    fn get(&self, name: &str) -> Option<Bson> {
        self.fields().remove(name)
    }

    /// Returns the options with others, each set or removed.
    fn with(&self, others: impl IntoIterator<Item = (&'static str, Option<Bson>)>) -> Self {
        let mut fields = self.fields();
        for (name, value) in others {
            fields.remove(name);
            fields.extend(value.map(|value| (name.to_owned(), value)));
        }
        Self::of(fields)
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fields())
    }
}

impl Namespace {
    fn is_view(&self) -> bool {
        self.options.get("viewOn").is_some()
    }

    fn collation(&self) -> Option<Collation> {
        let collation = self.options.get("collation")?;
        Collation::parse(Doc::from(&raw(collation.as_document()?))).unwrap()
    }
}

/// The codes with which an index refuses what the model accepts: a key that is there already, two arrays, too many entries, a name
/// that is a position and a field.
const OF_INDEXES: [i32; 4] = [11_000, 171, 201, 16_746];

pub(crate) fn is_of_index((code, _): &Refusal) -> bool {
    OF_INDEXES.contains(code)
}

/// A view is read with another collation than its own.
const OTHER_COLLATION: i32 = 167;

impl Model {
    /// Returns what a database contains.
    pub(crate) fn of(db: &Database) -> Self {
        let mut model = Self::default();
        for name in NAMES {
            let (database, own) = split(name);
            let listed = raw(&doc! { "listCollections": 1, "$db": database, "filter": { "name": own } });
            let reply = Document::try_from(db.command(&listed).unwrap().as_ref()).unwrap();
            let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
            let Some(found) = batch.first().and_then(Bson::as_document) else { continue };
            let collection = db.collection::<RawDocumentBuf>(name);
            let options = Options::of(found.get_document("options").unwrap().clone());
            let mut namespace = Namespace { options, ..Namespace::default() };
            if !namespace.is_view() {
                let indexes = collection.list_indexes().unwrap();
                let defined = |index: &slate_core::IndexDescription| {
                    Options::of(Document::try_from(index.to_definition().as_ref()).unwrap())
                };
                namespace.indexes = indexes.iter().map(|index| (index.name.clone(), defined(index))).collect();
                namespace.documents = call::all(&collection).unwrap();
            }
            model.0.insert(name, namespace);
        }
        model
    }

    /// Returns the names that exist, and whether each is a collection.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&'static str, bool)> {
        self.0.iter().map(|(name, namespace)| (*name, !namespace.is_view()))
    }

    fn documents(&self, name: &str) -> &[RawDocumentBuf] {
        self.0.get(name).map_or(&[], |namespace| namespace.documents.as_slice())
    }

    fn is_view(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(Namespace::is_view)
    }

    /// Returns the state with these documents in a collection, which is created if it does not exist; `None` for a view.
    fn with(&self, name: &'static str, mut documents: Vec<RawDocumentBuf>) -> Option<Self> {
        if self.is_view(name) {
            return None;
        }
        documents.sort_by(|a, b| slate_query::order::compare(id(a), id(b)));
        let mut next = self.clone();
        next.0.entry(name).or_default().documents = documents;
        Some(next)
    }

    /// Returns how calls on a collection or a view compare strings.
    fn bindings(&self, name: &str) -> Bindings {
        Bindings::new(0).with_collation(self.0.get(name).and_then(Namespace::collation))
    }

    fn filter(&self, name: &str, filter: &Document) -> Option<Filter> {
        Filter::parse_with(Doc::from(&raw(filter)), &self.bindings(name)).ok()
    }

    /// Returns the positions of the documents that match.
    fn matching(&self, name: &str, filter: &Document) -> Option<Vec<usize>> {
        let filter = self.filter(name, filter)?;
        let mut positions = Vec::new();
        for (position, document) in self.documents(name).iter().enumerate() {
            if filter.evaluate(Doc::from(document)).ok()? {
                positions.push(position);
            }
        }
        Some(positions)
    }

    /// Returns the states in which a call that returned this can leave the database; none if it cannot return this.
    pub(crate) fn after(&self, name: &'static str, call: &Call, outcome: &Outcome) -> Vec<Self> {
        let effects = match call {
            Call::Read(read) => return if self.reads(name, read, outcome) { vec![self.clone()] } else { Vec::new() },
            Call::BulkWrite { operations, ordered } => {
                let operations: Vec<(&'static str, &Call)> = operations.iter().map(|call| (name, call)).collect();
                return self.bulk(&operations, *ordered, outcome);
            }
            Call::Insert { documents, mode, checks } => {
                return self.insert_many(name, documents, *mode, *checks, outcome);
            }
            Call::Write { filter, sink } => self.write(name, filter, sink),
            Call::Create(_)
            | Call::SetView(_)
            | Call::SetValidator(_)
            | Call::KeepImages(_)
            | Call::Rename { .. }
            | Call::HideIndex(..)
            | Call::CreateIndex(_)
            | Call::CreateTtl { .. }
            | Call::DropIndex(_)
            | Call::DropCollection => self.definition(name, call),
            _ => self.document_write(name, call),
        };
        self.judged(call, outcome, effects)
    }

    /// Returns those of the effects that agree with the outcome.
    fn judged(&self, call: &Call, outcome: &Outcome, effects: Effects) -> Vec<Self> {
        match (outcome, effects) {
            (Ok(answer), Some(effects)) => {
                let agrees = |expected: &Answer| matches!(expected, Answer::Other(_)) || expected == answer;
                effects.into_iter().filter(|(_, expected)| agrees(expected)).map(|(state, _)| state).collect()
            }
            (Ok(_), None) => Vec::new(),
            (Err(_), None) => vec![self.clone()],
            (Err(refusal), Some(_)) => {
                let creates_index = matches!(call, Call::CreateIndex(_) | Call::CreateTtl { .. });
                let is_view = matches!(call, Call::Create(_) | Call::SetView(_) | Call::Write { .. });
                let is_allowed = is_of_index(refusal) || creates_index || is_view && refusal.0 == OTHER_COLLATION;
                if is_allowed { vec![self.clone()] } else { Vec::new() }
            }
        }
    }

    /// Returns the state without the collections and views of a database.
    pub(crate) fn without_database(&self, database: &str) -> Self {
        let mut next = self.clone();
        next.0.retain(|name, _| split(name).0 != database);
        next
    }
}

fn id(document: &RawDocumentBuf) -> Value<'_> {
    Doc::from(document).get("_id").unwrap_or(Value::NULL)
}

/// Stored documents begin with their `_id`.
fn with_id_first(document: &RawDocumentBuf) -> Option<RawDocumentBuf> {
    let mut fields = Document::try_from(document.as_ref()).ok()?;
    let id = fields.remove("_id")?;
    let mut sorted = bson::doc! { "_id": id };
    sorted.extend(fields);
    Some(raw(&sorted))
}
