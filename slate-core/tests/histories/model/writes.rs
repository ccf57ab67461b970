//! Changes of documents.

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_core::{ReturnDocument, UpdateModifications};
use slate_query::{
    filter::Filter,
    order,
    raw::{Doc, Value},
    sort::Sort,
    update::{Context, Update, merge},
};

use super::{Answer, Effects, Model, Outcome, id, is_of_index, with_id_first};
use crate::{
    call::{Call, Checks, Mode, Sink},
    common::raw,
};

/// What an update has done.
struct Updated {
    state: Model,
    matched: u64,
    modified: u64,
    upserted: u64,
}

/// What becomes of a stored document and a new one with its `_id`.
type Merging<'m> = &'m dyn Fn(&RawDocumentBuf, &RawDocumentBuf) -> Option<RawDocumentBuf>;

impl Model {
    pub(super) fn document_write(&self, name: &'static str, call: &Call) -> Effects {
        let counted = |updated: Updated| {
            vec![(updated.state, Answer::Counts(vec![updated.matched, updated.modified, updated.upserted]))]
        };
        if self.is_view(name) {
            return None;
        }
        match call {
            Call::Update { filter, update, many, upsert, checks } => {
                self.update(name, filter, &update_value(update), *many, *upsert, *checks).map(counted)
            }
            Call::Replace { filter, replacement, upsert } => {
                let replacement = Bson::Document(replacement.clone());
                self.update(name, filter, &replacement, false, *upsert, Checks::Validated).map(counted)
            }
            Call::Delete { filter, many } => {
                let (state, deleted) = self.delete(name, filter, *many)?;
                Some(vec![(state, Answer::Counts(vec![deleted]))])
            }
            Call::FindOneAndUpdate { filter, update, sort, returns } => {
                self.find_one_and_change(name, filter, &update_value(update), sort, *returns)
            }
            Call::FindOneAndReplace { filter, replacement, sort } => {
                let replacement = Bson::Document(replacement.clone());
                self.find_one_and_change(name, filter, &replacement, sort, ReturnDocument::After)
            }
            Call::FindOneAndDelete { filter, sort } => {
                let firsts = self.first(name, filter, sort)?;
                if firsts.is_empty() {
                    return Some(vec![(self.clone(), Answer::Rows(Vec::new()))]);
                }
                let without = |first: &usize| {
                    let mut documents = self.documents(name).to_vec();
                    let removed = documents.remove(*first);
                    Some((self.with(name, documents)?, Answer::Rows(vec![removed])))
                };
                firsts.iter().map(without).collect()
            }
            Call::UpsertMany(documents) => self.put(name, documents, &|_, new| Some(new.clone())),
            Call::MergeMany(documents) => self.put(name, documents, &patched),
            other => panic!("no write of documents: {other:?}"),
        }
    }

    /// Returns whether the validator lets a document be written.
    fn accepts(&self, name: &str, old: Option<&RawDocumentBuf>, new: &RawDocumentBuf, checks: Checks) -> Option<bool> {
        let Some(namespace) = self.0.get(name) else { return Some(true) };
        let option = |option: &str| namespace.options.get(option).and_then(|value| Some(value.as_str()?.to_owned()));
        let Some(Bson::Document(rules)) = namespace.options.get("validator") else { return Some(true) };
        let level = option("validationLevel");
        if checks == Checks::Bypassed || level.as_deref() == Some("off") || option("validationAction")? == "warn" {
            return Some(true);
        }
        let rules = self.filter(name, &rules)?;
        let holds = |document: &RawDocumentBuf| rules.evaluate(Doc::from(document)).ok();
        if let (Some("moderate"), Some(old)) = (level.as_deref(), old)
            && !holds(old)?
        {
            return Some(true);
        }
        holds(new)
    }

    fn position(&self, name: &str, id: Value<'_>) -> Option<usize> {
        self.documents(name).iter().position(|document| order::equal(super::id(document), id))
    }

    fn insert(&self, name: &'static str, document: &RawDocumentBuf, checks: Checks) -> Option<Self> {
        if self.position(name, id(document)).is_some() || !self.accepts(name, None, document, checks)? {
            return None;
        }
        let mut documents = self.documents(name).to_vec();
        documents.push(document.clone());
        self.with(name, documents)
    }

    pub(super) fn insert_many(
        &self,
        name: &'static str,
        new: &[Document],
        mode: Mode,
        checks: Checks,
        outcome: &Outcome,
    ) -> Vec<Self> {
        let inserts: Vec<Call> = new
            .iter()
            .map(|document| Call::Insert { documents: vec![document.clone()], mode: Mode::AllOrNothing, checks })
            .collect();
        let operations: Vec<(&'static str, &Call)> = inserts.iter().map(|insert| (name, insert)).collect();
        match (mode, outcome) {
            (Mode::AllOrNothing, Err(refusal)) => {
                let mut state = self.clone();
                for document in new {
                    match state.insert(name, &raw(document), checks) {
                        Some(next) => state = next,
                        None => return vec![self.clone()],
                    }
                }
                if is_of_index(refusal) { vec![self.clone()] } else { Vec::new() }
            }
            (_, Err(_)) => {
                if self.is_view(name) {
                    vec![self.clone()]
                } else {
                    Vec::new()
                }
            }
            (_, Ok(Answer::Partly { refused, counts })) => {
                let Some((state, all)) = self.partly(&operations, mode != Mode::Unordered, refused) else {
                    return Vec::new();
                };
                if counts[..] == all[..1] { vec![state] } else { Vec::new() }
            }
            (_, Ok(_)) => Vec::new(),
        }
    }

    pub(crate) fn bulk(&self, operations: &[(&'static str, &Call)], ordered: bool, outcome: &Outcome) -> Vec<Self> {
        let Ok(Answer::Partly { refused, counts }) = outcome else { return Vec::new() };
        match self.partly(operations, ordered, refused) {
            Some((state, all)) if all == *counts => vec![state],
            _ => Vec::new(),
        }
    }

    /// Returns the state after operations of which some were refused, and the numbers of documents that were inserted, matched, modified,
    /// upserted and deleted. `None` if these cannot be the refused ones.
    fn partly(
        &self,
        operations: &[(&'static str, &Call)],
        ordered: bool,
        refused: &[(usize, crate::common::Refusal)],
    ) -> Option<(Self, Vec<u64>)> {
        let (mut state, mut all) = (self.clone(), vec![0; 5]);
        for (at, (name, call)) in operations.iter().enumerate() {
            let done = match call {
                Call::Insert { documents, checks, .. } => {
                    state.insert(name, &raw(&documents[0]), *checks).map(|state| (state, vec![1, 0, 0, 0, 0]))
                }
                call => state.document_write(name, call).and_then(|effects| {
                    let (state, answer) = effects.into_iter().next()?;
                    let counts = match answer {
                        Answer::Counts(counts) if counts.len() == 1 => vec![0, 0, 0, 0, counts[0]],
                        Answer::Counts(counts) => vec![0, counts[0], counts[1], counts[2], 0],
                        _ => return None,
                    };
                    Some((state, counts))
                }),
            };
            match refused.iter().find(|(index, _)| *index == at) {
                Some((_, refusal)) => {
                    if done.is_some() && !is_of_index(refusal) {
                        return None;
                    }
                    if ordered {
                        // Nothing is tried after it.
                        return (refused.len() == 1).then_some((state, all));
                    }
                }
                None => {
                    let (next, counts) = done?;
                    state = next;
                    all.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
                }
            }
        }
        Some((state, all))
    }

    fn update(
        &self,
        name: &'static str,
        filter: &Document,
        update: &Bson,
        many: bool,
        upsert: bool,
        checks: Checks,
    ) -> Option<Updated> {
        let mut positions = self.matching(name, filter)?;
        let parsed = self.parsed(name, update)?;
        if positions.is_empty() && upsert {
            let filter = self.filter(name, filter)?;
            let new = upserted(&parsed, &filter)?;
            let state = self.insert(name, &new, checks)?;
            return Some(Updated { state, matched: 0, modified: 0, upserted: 1 });
        }
        if !many {
            positions.truncate(1);
        }
        let (state, modified) = self.change(name, &positions, update, checks)?;
        Some(Updated { state, matched: positions.len() as u64, modified, upserted: 0 })
    }

    fn parsed(&self, name: &str, update: &Bson) -> Option<Update> {
        let wrapped = raw(&doc! { "u": update.clone() });
        Update::parse(Doc::from(&wrapped).get("u")?, &[], &self.bindings(name)).ok()
    }

    /// Updates the documents at these positions. Returns the state and the number of documents that changed.
    fn change(&self, name: &'static str, positions: &[usize], update: &Bson, checks: Checks) -> Option<(Self, u64)> {
        let parsed = self.parsed(name, update)?;
        let mut documents = self.documents(name).to_vec();
        let mut modified = 0;
        for position in positions {
            let document = documents.get_mut(*position)?;
            let Some(changed) = parsed.apply(Doc::from(&*document), &Context::modify(0, None)).ok()? else { continue };
            let changed = with_id_first(&RawDocumentBuf::from_bytes(changed).ok()?)?;
            if id(&changed) != id(document) || !self.accepts(name, Some(document), &changed, checks)? {
                return None;
            }
            *document = changed;
            modified += 1;
        }
        if positions.is_empty() {
            return Some((self.clone(), 0));
        }
        Some((self.with(name, documents)?, modified))
    }

    fn find_one_and_change(
        &self,
        name: &'static str,
        filter: &Document,
        update: &Bson,
        sort: &Document,
        returns: ReturnDocument,
    ) -> Effects {
        self.parsed(name, update)?;
        let firsts = self.first(name, filter, sort)?;
        if firsts.is_empty() {
            return Some(vec![(self.clone(), Answer::Rows(Vec::new()))]);
        }
        let changed = |first: &usize| {
            let (state, _) = self.change(name, &[*first], update, Checks::Validated)?;
            let shown = if returns == ReturnDocument::After { &state } else { self };
            let shown = shown.documents(name)[*first].clone();
            Some((state, Answer::Rows(vec![shown])))
        };
        // Of equal ones some may be refused.
        let changed: Vec<_> = firsts.iter().filter_map(changed).collect();
        (!changed.is_empty()).then_some(changed)
    }

    fn delete(&self, name: &'static str, filter: &Document, many: bool) -> Option<(Self, u64)> {
        let mut positions = self.matching(name, filter)?;
        if !many {
            positions.truncate(1);
        }
        if positions.is_empty() {
            return Some((self.clone(), 0));
        }
        let kept = self.documents(name).iter().enumerate().filter(|(position, _)| !positions.contains(position));
        let kept = kept.map(|(_, document)| document.clone()).collect();
        Some((self.with(name, kept)?, positions.len() as u64))
    }

    /// Returns the positions of the documents that come first in the order of the sort.
    fn first(&self, name: &str, filter: &Document, sort: &Document) -> Option<Vec<usize>> {
        let positions = self.matching(name, filter)?;
        let sort = raw(sort);
        let sort = Sort::parse(Doc::from(&sort)).ok()?.with_collation(self.bindings(name).collation().cloned());
        let mut keys = Vec::new();
        for position in &positions {
            let mut key = Vec::new();
            sort.key(Doc::from(self.documents(name).get(*position)?), &mut key).ok()?;
            keys.push(key);
        }
        let least = keys.iter().min().cloned();
        let firsts = positions.iter().zip(&keys).filter(|(_, key)| Some(*key) == least.as_ref());
        Some(firsts.map(|(position, _)| *position).collect())
    }

    /// Writes documents by their `_id`: new ones as they are, known ones as `with` says. Of several with one `_id` the validator sees
    /// what comes out.
    fn put(&self, name: &'static str, new: &[Document], with: Merging<'_>) -> Effects {
        let (mut state, mut counts) = (self.clone(), [0; 3]);
        for document in new {
            let document = raw(document);
            match state.position(name, id(&document)) {
                Some(position) => {
                    let (next, is_modified) = state.put_over(name, position, &document, with, Checks::Bypassed)?;
                    state = next;
                    counts[0] += 1;
                    counts[1] += u64::from(is_modified);
                }
                None => {
                    state = state.insert(name, &document, Checks::Bypassed)?;
                    counts[2] += 1;
                }
            }
        }
        for document in new {
            let document = raw(document);
            let there = |state: &Self| {
                let position = state.position(name, id(&document))?;
                state.documents(name).get(position).cloned()
            };
            let (old, new) = (there(self), there(&state)?);
            if old.as_ref() != Some(&new) && !self.accepts(name, old.as_ref(), &new, Checks::Validated)? {
                return None;
            }
        }
        Some(vec![(state, Answer::Counts(counts.to_vec()))])
    }

    fn put_over(
        &self,
        name: &'static str,
        position: usize,
        document: &RawDocumentBuf,
        with: Merging<'_>,
        checks: Checks,
    ) -> Option<(Self, bool)> {
        let mut documents = self.documents(name).to_vec();
        let old = documents[position].clone();
        let new = with(&old, document)?;
        let is_modified = new != old;
        if is_modified && !self.accepts(name, Some(&old), &new, checks)? {
            return None;
        }
        documents[position] = new;
        Some((self.with(name, documents)?, is_modified))
    }

    pub(super) fn write(&self, name: &'static str, filter: &Document, sink: &Sink) -> Effects {
        let rows = self.rows(name, &self.bindings(name))?;
        let filter = self.filter(name, filter)?;
        let mut kept = Vec::new();
        for row in rows {
            if filter.evaluate(Doc::from(&row)).ok()? {
                kept.push(with_id_first(&row)?);
            }
        }
        kept.sort_by(|a, b| order::compare(id(a), id(b)));
        let state = match sink {
            Sink::Out(into) => {
                for row in &kept {
                    if !self.accepts(into, None, row, Checks::Validated)? {
                        return None;
                    }
                }
                self.with(into, kept)?
            }
            Sink::Merge { into, matched, unmatched } => {
                // `$merge` has no collation.
                if self.is_view(into) || self.bindings(name).collation().is_some() {
                    return None;
                }
                // Also for no row at all the collection is created.
                let mut state = self.with(into, self.documents(into).to_vec())?;
                for row in &kept {
                    state = state.merge_row(into, row, matched, unmatched)?;
                }
                state
            }
        };
        Some(vec![(state, Answer::Counts(vec![0]))])
    }

    fn merge_row(&self, into: &'static str, row: &RawDocumentBuf, matched: &str, unmatched: &str) -> Option<Self> {
        let Some(position) = self.position(into, id(row)) else {
            return match unmatched {
                "insert" if matches!(matched, "merge" | "keepExisting") => {
                    self.insert(into, &as_appended(row)?, Checks::Validated)
                }
                "insert" => self.insert(into, row, Checks::Validated),
                "discard" => Some(self.clone()),
                _ => None,
            };
        };
        let over =
            |with: Merging<'_>| self.put_over(into, position, row, with, Checks::Validated).map(|(state, _)| state);
        match matched {
            "merge" if unmatched == "insert" => over(&patched),
            // Here the `_id` gets the type of the row's.
            "merge" => over(&patched_with_id),
            "replace" => over(&|_, new| Some(new.clone())),
            "keepExisting" => Some(self.clone()),
            _ => None,
        }
    }
}

fn upserted(update: &Update, filter: &Filter) -> Option<RawDocumentBuf> {
    let new = update.upsert(filter, &Context::insert(0)).ok()?;
    with_id_first(&RawDocumentBuf::from_bytes(new).ok()?)
}

/// Returns a row with its fields in the order in which an update appends them: by name, numbers by value.
fn as_appended(row: &RawDocumentBuf) -> Option<RawDocumentBuf> {
    let number = |name: &str| name.parse::<u64>().ok().filter(|number| number.to_string() == name);
    let mut fields: Vec<(String, Bson)> = Document::try_from(row.as_ref()).ok()?.into_iter().collect();
    fields.sort_by(|(one, _), (other, _)| {
        let by_value = number(one).zip(number(other)).map(|(one, other)| one.cmp(&other));
        (one != "_id").cmp(&(other != "_id")).then(by_value.unwrap_or_else(|| one.cmp(other)))
    });
    Some(raw(&fields.into_iter().collect()))
}

fn patched_with_id(old: &RawDocumentBuf, new: &RawDocumentBuf) -> Option<RawDocumentBuf> {
    let mut fields = Document::try_from(patched(old, new)?.as_ref()).ok()?;
    fields.insert("_id", Document::try_from(new.as_ref()).ok()?.get("_id")?.clone());
    Some(raw(&fields))
}

fn patched(old: &RawDocumentBuf, new: &RawDocumentBuf) -> Option<RawDocumentBuf> {
    // An `_id` that is equal, but of another type, is not changed.
    let mut patch = Document::try_from(new.as_ref()).ok()?;
    patch.remove("_id");
    let patch = raw(&patch);
    match merge(Doc::from(old), Doc::from(&patch)).ok()? {
        Some(changed) => RawDocumentBuf::from_bytes(changed).ok(),
        None => Some(old.clone()),
    }
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
