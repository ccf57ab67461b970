//! Reads of collections and views.

use bson::{Bson, Document, RawDocumentBuf, doc};
use slate_query::{
    distinct,
    expression::Bindings,
    filter::Filter,
    order,
    raw::{Doc, Value},
    sort::Sort,
    update::{Context, Update},
};

use super::{Answer, Model, OTHER_COLLATION, Outcome, id};
use crate::{
    call::{NAMES, Read, split},
    common::raw,
};

impl Model {
    /// Returns the documents of a collection, or those that the pipeline of a view returns, in any order.
    pub(crate) fn rows(&self, name: &str, bindings: &Bindings) -> Option<Vec<RawDocumentBuf>> {
        let Some(namespace) = self.0.get(name) else { return Some(Vec::new()) };
        let Some(on) = namespace.options.get("viewOn") else { return Some(namespace.documents.clone()) };
        let mut rows = match self.sibling(name, on.as_str()?) {
            Some(on) => self.rows(on, bindings)?,
            None => Vec::new(),
        };
        for stage in namespace.options.get("pipeline")?.as_array()? {
            rows = stage_rows(stage.as_document()?, rows, bindings)?;
        }
        Some(rows)
    }

    /// Returns all rows of what has this name, as a find reads them.
    pub(crate) fn all_rows(&self, name: &str) -> Option<Vec<RawDocumentBuf>> {
        self.rows(name, &self.bindings(name))
    }

    /// Returns the stored name of a collection of the same database, if it is one that is modelled.
    pub(super) fn sibling(&self, name: &str, own: &str) -> Option<&'static str> {
        NAMES.into_iter().find(|other| split(other) == (split(name).0, own))
    }

    /// Returns whether a view that is read for this name has another collation than the read.
    fn mixes_collations(&self, name: &str, bindings: &Bindings) -> bool {
        let Some(namespace) = self.0.get(name) else { return false };
        let Some(on) = namespace.options.get("viewOn") else { return false };
        let shown = |collation: Option<&slate_query::collation::Collation>| collation.map(|one| one.to_document());
        shown(namespace.collation().as_ref()) != shown(bindings.collation())
            || on.as_str().and_then(|on| self.sibling(name, on)).is_some_and(|on| self.mixes_collations(on, bindings))
    }

    /// Returns whether a read can return this.
    pub(super) fn reads(&self, name: &str, read: &Read, outcome: &Outcome) -> bool {
        let bindings = self.bindings(name);
        let others = match read {
            Read::Lookup { from, .. } => self.sibling(name, from),
            Read::UnionWith { with, .. } => self.sibling(name, with),
            _ => None,
        };
        let mixes = [Some(name), others].into_iter().flatten().any(|name| self.mixes_collations(name, &bindings));
        match outcome {
            Err((OTHER_COLLATION, _)) => mixes,
            Err(_) => self.must_fail(name, read, &bindings) || matches!(read, Read::Estimate) && self.is_view(name),
            Ok(answer) => self.answers(name, read, answer, &bindings).unwrap_or(false),
        }
    }

    fn must_fail(&self, name: &str, read: &Read, bindings: &Bindings) -> bool {
        let Some(rows) = self.rows(name, bindings) else { return true };
        match read {
            Read::Find { filter, .. }
            | Read::FindOne { filter, .. }
            | Read::Count(filter)
            | Read::Distinct { filter, .. }
            | Read::Lookup { filter, .. }
            | Read::UnionWith { filter, .. } => matching(rows, filter, bindings).is_none(),
            Read::ById(_) | Read::Estimate => false,
        }
    }

    fn answers(&self, name: &str, read: &Read, answer: &Answer, bindings: &Bindings) -> Option<bool> {
        let rows = self.rows(name, bindings)?;
        let matching = |filter: &Document| matching(rows.clone(), filter, bindings);
        Some(match (read, answer) {
            (Read::Find { filter, sort, limit }, Answer::Rows(found)) => {
                is_part(matching(filter)?, sort.as_ref(), *limit, found, bindings)?
            }
            (Read::FindOne { filter, sort }, Answer::Rows(found)) => {
                is_part(matching(filter)?, Some(sort), Some(1), found, bindings)?
            }
            (Read::ById(wanted), Answer::Rows(found)) => {
                let wanted = raw(&doc! { "_id": wanted });
                let rows = rows.into_iter().filter(|row| order::equal(id(row), id(&wanted))).collect();
                is_part(rows, None, Some(1), found, bindings)?
            }
            (Read::Count(filter), Answer::Counts(counts)) => counts[..] == [matching(filter)?.len() as u64],
            (Read::Estimate, Answer::Counts(counts)) => counts[..] == [rows.len() as u64],
            (Read::Distinct { path, filter }, Answer::Rows(found)) => {
                are_distinct(&matching(filter)?, path, found, bindings)?
            }
            (Read::Lookup { filter, from, foreign }, Answer::Rows(found)) => {
                let others = match self.sibling(name, from) {
                    Some(from) => self.rows(from, bindings)?,
                    None => Vec::new(),
                };
                let joined = |row: &RawDocumentBuf| {
                    let mut row = Document::try_from(row.as_ref()).ok()?;
                    let found = crate::model::reads::matching(
                        others.clone(),
                        &doc! { *foreign: { "$eq": row.get("_id")?.clone() } },
                        bindings,
                    )?;
                    let found = found.iter().map(|found| Document::try_from(found.as_ref()).unwrap().into());
                    row.insert("l", found.collect::<Vec<Bson>>());
                    Some(raw(&row))
                };
                let joined: Option<Vec<RawDocumentBuf>> = matching(filter)?.iter().map(joined).collect();
                sorted(joined?.iter().map(with_sorted_list)) == sorted(found.iter().map(with_sorted_list))
            }
            (Read::UnionWith { filter, with }, Answer::Rows(found)) => {
                let mut rows = rows;
                if let Some(with) = self.sibling(name, with) {
                    rows.extend(self.rows(with, bindings)?);
                }
                is_part(crate::model::reads::matching(rows, filter, bindings)?, None, None, found, bindings)?
            }
            _ => false,
        })
    }
}

/// Returns the rows after a stage of a view.
fn stage_rows(stage: &Document, rows: Vec<RawDocumentBuf>, bindings: &Bindings) -> Option<Vec<RawDocumentBuf>> {
    if let Ok(filter) = stage.get_document("$match") {
        return matching(rows, filter, bindings);
    }
    let wrapped = raw(&doc! { "u": [stage.clone()] });
    let update = Update::parse(Doc::from(&wrapped).get("u")?, &[], bindings).ok()?;
    let changed = |row: RawDocumentBuf| match update.apply(Doc::from(&row), &Context::modify(0, None)).ok()? {
        Some(changed) => RawDocumentBuf::from_bytes(changed).ok(),
        None => Some(row),
    };
    rows.into_iter().map(changed).collect()
}

fn matching(rows: Vec<RawDocumentBuf>, filter: &Document, bindings: &Bindings) -> Option<Vec<RawDocumentBuf>> {
    let filter = Filter::parse_with(Doc::from(&raw(filter)), bindings).ok()?;
    let mut matching = Vec::new();
    for row in rows {
        if filter.evaluate(Doc::from(&row)).ok()? {
            matching.push(row);
        }
    }
    Some(matching)
}

/// Returns whether `found` are the first of the rows in the order of the sort, or any of them.
fn is_part(
    rows: Vec<RawDocumentBuf>,
    sort: Option<&Document>,
    limit: Option<u64>,
    found: &[RawDocumentBuf],
    bindings: &Bindings,
) -> Option<bool> {
    let most = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let wanted = rows.len().min(most);
    if let Some(sort) = sort {
        let sort = raw(sort);
        let sort = Sort::parse(Doc::from(&sort)).ok()?.with_collation(bindings.collation().cloned());
        let key = |row: &RawDocumentBuf| {
            let mut key = Vec::new();
            sort.key(Doc::from(row), &mut key).ok().map(|()| key)
        };
        let mut keys = rows.iter().map(key).collect::<Option<Vec<_>>>()?;
        keys.sort();
        keys.truncate(wanted);
        if found.iter().map(key).collect::<Option<Vec<_>>>()? != keys {
            return Some(false);
        }
    }
    let mut left = rows;
    for row in found {
        match left.iter().position(|other| other == row) {
            Some(position) => drop(left.swap_remove(position)),
            None => return Some(false),
        }
    }
    Some(found.len() == wanted)
}

/// Returns whether `found` has one value for each group of equal values, and no other.
fn are_distinct(rows: &[RawDocumentBuf], path: &str, found: &[RawDocumentBuf], bindings: &Bindings) -> Option<bool> {
    let path = distinct::parse(path).ok()?;
    let same = |a: Value<'_>, b: Value<'_>| match bindings.collation() {
        Some(collation) => order::equal(collation.apply(a).as_value(), collation.apply(b).as_value()),
        None => order::equal(a, b),
    };
    let found: Vec<Value<'_>> = found.iter().filter_map(|row| Doc::from(row).get("v")).collect();
    let mut values = Vec::new();
    for row in rows {
        distinct::values(&path, Doc::from(row), &mut |value| values.push(value));
    }
    let is_once = |value: &Value<'_>| found.iter().filter(|other| same(**other, *value)).count() == 1;
    let exists = |value: &Value<'_>| values.iter().any(|other| other == value);
    Some(values.iter().all(is_once) && found.iter().all(exists))
}

/// Returns a row whose list `l` is sorted by its bytes: a join returns its documents in any order.
fn with_sorted_list(row: &RawDocumentBuf) -> RawDocumentBuf {
    let mut row = Document::try_from(row.as_ref()).unwrap();
    let list = row.get_array_mut("l").unwrap();
    list.sort_by_cached_key(|document| raw(document.as_document().unwrap()).into_bytes());
    raw(&row)
}

fn sorted(rows: impl Iterator<Item = RawDocumentBuf>) -> Vec<Vec<u8>> {
    let mut rows: Vec<Vec<u8>> = rows.map(RawDocumentBuf::into_bytes).collect();
    rows.sort();
    rows
}
