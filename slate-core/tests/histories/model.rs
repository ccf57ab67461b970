//! A model of the database without a store: a list of documents for each collection, which the calls change one after the other. It uses
//! the language (filters, updates, sorts) and neither plans nor indexes, transactions or files.

use std::collections::BTreeMap;

use bson::{Bson, Document, RawDocumentBuf};
use slate_core::UpdateModifications;
use slate_query::{
    expression::Bindings,
    filter::Filter,
    order,
    raw::{Doc, Value},
    sort::Sort,
    update::{Context, Update, merge},
};

use super::{Call, raw};

/// The documents of a collection, in the order of `_id`.
type Documents = Vec<RawDocumentBuf>;

/// The documents of all collections.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Model(BTreeMap<&'static str, Documents>);

/// Returns the state after a statement; `None` if it fails.
type Operation<'o> = &'o dyn Fn(&Model) -> Option<Model>;

/// A state after a call, and whether the call has succeeded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Possible {
    pub(crate) state: Model,
    pub(crate) has_succeeded: bool,
}

impl Model {
    pub(crate) fn of(collections: impl IntoIterator<Item = (&'static str, Documents)>) -> Self {
        Self(collections.into_iter().filter(|(_, documents)| !documents.is_empty()).collect())
    }

    fn documents(&self, name: &str) -> &[RawDocumentBuf] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    fn with(&self, name: &'static str, mut documents: Documents) -> Self {
        documents.sort_by(|a, b| order::compare(id(a), id(b)));
        let mut next = self.clone();
        next.0.remove(name);
        if !documents.is_empty() {
            next.0.insert(name, documents);
        }
        next
    }

    /// Returns the states that a call can leave. More than one is possible where the order of equal documents is not defined, or an index
    /// can refuse what the model accepts.
    pub(crate) fn after(&self, name: &'static str, call: &Call) -> Vec<Possible> {
        let refused = || Possible { state: self.clone(), has_succeeded: false };
        let succeeded = |state| Possible { state, has_succeeded: true };
        let one = |changed: Option<Self>| changed.map_or_else(|| vec![refused()], |state| vec![succeeded(state)]);
        let each = |changed: Option<Vec<Self>>| {
            changed.map_or_else(|| vec![refused()], |states| states.into_iter().map(succeeded).collect())
        };
        match call {
            Call::Insert(documents) => one(self.insert(name, documents)),
            Call::Update { filter, update, many, upsert } => {
                one(self.update(name, filter, &update_value(update), *many, *upsert))
            }
            Call::Replace { filter, replacement, upsert } => {
                one(self.update(name, filter, &Bson::Document(replacement.clone()), false, *upsert))
            }
            Call::Delete { filter, many } => one(self.delete(name, filter, *many)),
            Call::FindOneAndUpdate { filter, update, sort } => {
                each(self.first(name, filter, sort).and_then(|firsts| {
                    if firsts.is_empty() {
                        return self.update(name, filter, &update_value(update), false, false).map(|state| vec![state]);
                    }
                    firsts.into_iter().map(|first| self.change(name, &[first], &update_value(update))).collect()
                }))
            }
            Call::FindOneAndDelete { filter, sort } => each(self.first(name, filter, sort).map(|firsts| {
                let without = |first: usize| {
                    let mut documents = self.documents(name).to_vec();
                    documents.remove(first);
                    self.with(name, documents)
                };
                if firsts.is_empty() { vec![self.clone()] } else { firsts.into_iter().map(without).collect() }
            })),
            Call::UpsertMany(documents) => one(self.merge(name, documents, |_, new| Some(new.clone()))),
            Call::MergeMany(documents) => one(self.merge(name, documents, merged)),
            Call::BulkWrite { inserted, filter, update, ordered } => {
                self.bulk(name, inserted, filter, update, *ordered)
            }
            Call::Write { filter, stage } => one(self.write(name, filter, stage)),
            Call::Rename(to) if *to == name => vec![refused()],
            Call::Rename(to) => {
                let mut moved = self.clone();
                let documents = moved.0.remove(name).unwrap_or_default();
                // Of an empty collection the model does not know whether it exists.
                let may_be_missing = documents.is_empty().then(refused);
                may_be_missing.into_iter().chain([succeeded(moved.with(to, documents))]).collect()
            }
            Call::DropCollection => one(Some(self.with(name, Vec::new()))),
            // Indexes change no document, whether they are accepted or not.
            Call::HideIndex(..) | Call::CreateIndex(_) | Call::DropIndex(_) => vec![refused(), succeeded(self.clone())],
        }
    }

    fn place(&self, name: &str, id: Value<'_>) -> Option<usize> {
        self.documents(name).iter().position(|document| order::equal(self::id(document), id))
    }

    fn insert(&self, name: &'static str, new: &[Document]) -> Option<Self> {
        let mut next = self.clone();
        for document in new {
            let document = raw(document);
            if next.place(name, id(&document)).is_some() {
                return None;
            }
            let mut documents = next.documents(name).to_vec();
            documents.push(document);
            next = next.with(name, documents);
        }
        Some(next)
    }

    /// Returns the places of the documents that match.
    fn matching(&self, name: &str, filter: &Document) -> Option<Vec<usize>> {
        let filter = raw(filter);
        let filter = Filter::parse_with(Doc::from(&filter), &Bindings::new(0)).ok()?;
        let mut places = Vec::new();
        for (place, document) in self.documents(name).iter().enumerate() {
            if filter.evaluate(Doc::from(document)).ok()? {
                places.push(place);
            }
        }
        Some(places)
    }

    fn update(&self, name: &'static str, filter: &Document, update: &Bson, many: bool, upsert: bool) -> Option<Self> {
        let mut places = self.matching(name, filter)?;
        let wrapped = bson::doc! { "u": update.clone() };
        let wrapped = raw(&wrapped);
        let value = Doc::from(&wrapped).get("u")?;
        let parsed = Update::parse(value, &[], &Bindings::new(0)).ok()?;
        if places.is_empty() && upsert {
            let filter = raw(filter);
            let filter = Filter::parse_with(Doc::from(&filter), &Bindings::new(0)).ok()?;
            let new = parsed.upsert(&filter, &Context::insert(0)).ok()?;
            let new = with_id_first(&RawDocumentBuf::from_bytes(new).ok()?)?;
            if self.place(name, id(&new)).is_some() {
                return None;
            }
            let mut documents = self.documents(name).to_vec();
            documents.push(new);
            return Some(self.with(name, documents));
        }
        if !many {
            places.truncate(1);
        }
        self.change(name, &places, update)
    }

    /// Updates the documents at these places.
    fn change(&self, name: &'static str, places: &[usize], update: &Bson) -> Option<Self> {
        let wrapped = bson::doc! { "u": update.clone() };
        let wrapped = raw(&wrapped);
        let parsed = Update::parse(Doc::from(&wrapped).get("u")?, &[], &Bindings::new(0)).ok()?;
        let mut documents = self.documents(name).to_vec();
        for place in places {
            let document = documents.get_mut(*place)?;
            let Some(changed) = parsed.apply(Doc::from(&*document), &Context::modify(0, None)).ok()? else { continue };
            let changed = with_id_first(&RawDocumentBuf::from_bytes(changed).ok()?)?;
            if id(&changed) != id(document) {
                return None;
            }
            *document = changed;
        }
        Some(self.with(name, documents))
    }

    fn delete(&self, name: &'static str, filter: &Document, many: bool) -> Option<Self> {
        let mut places = self.matching(name, filter)?;
        if !many {
            places.truncate(1);
        }
        let kept = self.documents(name).iter().enumerate().filter(|(place, _)| !places.contains(place));
        Some(self.with(name, kept.map(|(_, document)| document.clone()).collect()))
    }

    /// Returns the places of the documents that come first in the order of the sort.
    fn first(&self, name: &str, filter: &Document, sort: &Document) -> Option<Vec<usize>> {
        let places = self.matching(name, filter)?;
        let sort = raw(sort);
        let sort = Sort::parse(Doc::from(&sort)).ok()?;
        let mut keys = Vec::new();
        for place in &places {
            let mut key = Vec::new();
            sort.key(Doc::from(self.documents(name).get(*place)?), &mut key).ok()?;
            keys.push(key);
        }
        let least = keys.iter().min().cloned();
        Some(
            places.iter().zip(&keys).filter(|(_, key)| Some(*key) == least.as_ref()).map(|(place, _)| *place).collect(),
        )
    }

    /// Writes documents by their `_id`: new ones as they are, known ones as `with` says.
    fn merge(
        &self,
        name: &'static str,
        new: &[Document],
        with: impl Fn(&RawDocumentBuf, &RawDocumentBuf) -> Option<RawDocumentBuf>,
    ) -> Option<Self> {
        let mut next = self.clone();
        for document in new {
            let document = raw(document);
            let mut documents = next.documents(name).to_vec();
            match next.place(name, id(&document)) {
                Some(place) => documents[place] = with(&documents[place], &document)?,
                None => documents.push(document),
            }
            next = next.with(name, documents);
        }
        Some(next)
    }

    /// Returns the states after an insert, an update and a delete, each of which an index may refuse.
    fn bulk(
        &self,
        name: &'static str,
        inserted: &Document,
        filter: &Document,
        update: &UpdateModifications,
        ordered: bool,
    ) -> Vec<Possible> {
        let operations: [Operation<'_>; 3] = [
            &|state| state.insert(name, std::slice::from_ref(inserted)),
            &|state| state.update(name, filter, &update_value(update), true, false),
            &|state| state.delete(name, filter, false),
        ];
        let (mut going, mut ended) = (vec![self.clone()], Vec::new());
        for operation in operations {
            let mut next = Vec::new();
            for state in going {
                next.extend(operation(&state));
                if ordered { ended.push(state) } else { next.push(state) }
            }
            next.dedup();
            going = next;
        }
        let mut states = going;
        states.extend(ended);
        // A statement that cannot be parsed refuses all.
        let refused = Possible { state: self.clone(), has_succeeded: false };
        states.into_iter().map(|state| Possible { state, has_succeeded: true }).chain([refused]).collect()
    }

    fn write(&self, name: &'static str, filter: &Document, stage: &Document) -> Option<Self> {
        let places = self.matching(name, filter)?;
        let rows: Vec<Document> =
            places.iter().map(|place| Document::try_from(self.documents(name)[*place].as_ref()).unwrap()).collect();
        if stage.contains_key("$out") {
            return Some(self.with("y", rows.iter().map(raw).collect()));
        }
        let merge = stage.get_document("$merge").unwrap();
        let into = if merge.get_str("into").unwrap() == "x" { "x" } else { "y" };
        match merge.get_str("whenMatched").unwrap() {
            "merge" => self.merge(into, &rows, merged),
            "replace" => self.merge(into, &rows, |_, new| Some(new.clone())),
            _ => self.merge(into, &rows, |old, _| Some(old.clone())),
        }
    }
}

fn id(document: &RawDocumentBuf) -> Value<'_> {
    Doc::from(document).get("_id").unwrap_or(Value::NULL)
}

fn merged(old: &RawDocumentBuf, new: &RawDocumentBuf) -> Option<RawDocumentBuf> {
    // An `_id` that is equal, but of another type, is not changed.
    let mut patch = Document::try_from(new.as_ref()).ok()?;
    patch.remove("_id");
    let patch = raw(&patch);
    match merge(Doc::from(old), Doc::from(&patch)).ok()? {
        Some(changed) => RawDocumentBuf::from_bytes(changed).ok(),
        None => Some(old.clone()),
    }
}

/// Stored documents begin with their `_id`.
fn with_id_first(document: &RawDocumentBuf) -> Option<RawDocumentBuf> {
    let mut fields = Document::try_from(document.as_ref()).ok()?;
    let id = fields.remove("_id")?;
    let mut sorted = bson::doc! { "_id": id };
    sorted.extend(fields);
    Some(raw(&sorted))
}

fn update_value(update: &UpdateModifications) -> Bson {
    match update {
        UpdateModifications::Operators(operators) => Document::try_from(operators.as_ref()).unwrap().into(),
        UpdateModifications::Pipeline(stages) => {
            let stages = stages.iter().map(|stage| Bson::from(Document::try_from(stage.as_ref()).unwrap()));
            Bson::Array(stages.collect())
        }
        other => panic!("an update of another kind: {other:?}"),
    }
}
