use std::sync::Arc;

use bson::{Document, doc};
use slate_query::{interval::IntervalSet, pattern::Direction, raw::Doc, wildcard::PATH_FIELD};

use super::{Description, Node, Stage};
use crate::{
    catalog::IndexInfo,
    document::long,
    plan::{
        Checks, IndexBounds,
        bounds_text::{Strings, bounds_text, drawn, drawn_paths},
        mongo_fields::{bson, condition, direction_name},
        reads::Read,
        shown::ShownNode,
        shown_text::shown_text,
    },
};

/// A walk over the entries of an index.
#[derive(Clone, Debug)]
pub(crate) struct IndexScan {
    pub(crate) index: Arc<IndexInfo>,
    pub(crate) bounds: IndexBounds,
    /// The conditions on an entry's values: other entries are skipped.
    pub(crate) checks: Checks,
    pub(crate) direction: Direction,
    /// Maximum number of records to return. Set only if no node above rejects a record.
    pub(crate) limit: Option<u64>,
    /// If not 0: among entries that are equal in this many leading fields, only the first in ascending order is returned.
    /// Combined with `checks` only for an ascending walk.
    pub(crate) firsts: usize,
}

impl IndexScan {
    pub(crate) const STAGE: Stage = Stage { name: "IXSCAN", title: "INDEX SCAN" };

    /// Returns whether a record has at most one entry within the bounds.
    pub(crate) fn finds_once(&self) -> bool {
        self.bounds.find_once(&self.index)
    }

    pub(super) fn named(&self, name: &'static str) -> NamedScan<'_> {
        NamedScan { scan: self, name }
    }

    fn show(&self, shown: ShownNode, name: &'static str) -> ShownNode {
        let Self { index, bounds, checks, direction, limit, firsts } = self;
        let strings = Strings::of(index);
        let mut line = format!("{} {}", index.name, direction_name(*direction));
        let mut bound_fields = Document::new();
        for ((path, _), bound) in index.pattern.fields().iter().zip(bounds.fields()) {
            let text = if path.as_str() == PATH_FIELD { drawn_paths(bound) } else { drawn(bound, strings) };
            bound_fields.insert(path.as_str(), text);
        }
        let fields: Vec<String> =
            bound_fields.iter().map(|(path, bound)| format!("{path} {}", bound.as_str().unwrap_or_default())).collect();
        if !fields.is_empty() {
            line.push_str(": ");
            line.push_str(&fields.join(", "));
        }
        if bounds.are_of_keys() {
            line.push_str(" within min and max");
        }
        let mut checked = Document::new();
        for (field, held) in &checks.values {
            if let Some((path, _)) = index.pattern.fields().get(*field) {
                let bound = drawn(held, strings);
                line.push_str(&format!(", where {path} {bound}"));
                checked.insert(path.as_str(), bound);
            }
        }
        let filter = checks.filter.as_ref().map(|filter| shown_text(&filter.drawn));
        if let Some(filter) = &filter {
            line.push_str(&format!(", where {filter}"));
        }
        let mut shown = shown
            .mongo(name, self.mongo_fields())
            .with("index", &*index.name)
            .with("direction", direction_name(*direction))
            .with("bounds", bound_fields)
            .with("multikey", index.is_multikey());
        if !checked.is_empty() {
            shown = shown.with("checks", checked);
        }
        if let Some(filter) = filter {
            shown = shown.with("filter", filter);
        }
        if let Some(limit) = limit {
            shown = shown.with("limit", long(*limit));
            line.push_str(&format!(", limit {limit}"));
        }
        if *firsts > 0 {
            let fields = index.pattern.fields().iter().take(*firsts).map(|(path, _)| path.as_str());
            let fields = fields.collect::<Vec<_>>().join(", ");
            line.push_str(&format!(", first of each {fields}"));
            shown = shown.with("firstOfEach", fields);
        }
        shown.line(line)
    }

    /// Returns the fields of the scan in MongoDB's `explain`.
    fn mongo_fields(&self) -> Document {
        let Self { index, bounds, checks, direction, .. } = self;
        let mut shown = Document::new();
        let all = IntervalSet::all();
        for (field, (path, declared)) in index.pattern.fields().iter().enumerate() {
            let checked = checks.values.iter().find(|(checked, _)| *checked == field).map(|(_, values)| values);
            let set = bounds.fields().get(field).or(checked).unwrap_or(&all);
            let way = if declared == direction { Direction::Ascending } else { Direction::Descending };
            shown.insert(path.as_str(), bounds_text(set, way, Strings::of(index)));
        }
        let mut fields = Document::new();
        if let Some(filter) = &checks.filter {
            fields.insert("filter", condition(&filter.drawn));
        }
        fields.extend(doc! {
            "keyPattern": bson(Doc::from(&index.keys)),
            "indexName": &*index.name,
            "isMultiKey": index.is_multikey(),
            "multiKeyPaths": multikey_paths(index),
            "isUnique": index.unique,
            "isSparse": index.sparse,
            "isPartial": index.partial.is_some(),
            "indexVersion": 2,
            "direction": direction_name(*direction),
        });
        if bounds.are_of_keys() {
            fields.insert("withinMinAndMax", true);
        }
        fields.insert("indexBounds", shown);
        fields
    }
}

/// A scan with the name of its stage in MongoDB, which depends on the node above it.
pub(super) struct NamedScan<'s> {
    scan: &'s IndexScan,
    name: &'static str,
}

impl Node for NamedScan<'_> {
    fn describe(&self, visit: &mut dyn FnMut(Description<'_>)) {
        visit(Description {
            read: Some(Read::Entries(self.name, self.scan)),
            show: &|shown, _| self.scan.show(shown, self.name),
            ..Description::of(IndexScan::STAGE.name, IndexScan::STAGE.title)
        });
    }
}

/// Returns, for each field of an index, the paths on which some document has an array.
fn multikey_paths(index: &IndexInfo) -> Document {
    let mut paths = Document::new();
    for (field, (path, _)) in index.pattern.fields().iter().enumerate() {
        let bits = index.multikey.get(field).copied().unwrap_or_default();
        let names: Vec<&str> = path.as_str().split('.').collect();
        let arrays = (1..=names.len()).filter(|length| bits >> (length - 1) & 1 == 1);
        let arrays: Vec<String> = arrays.filter_map(|length| Some(names.get(..length)?.join("."))).collect();
        paths.insert(path.as_str(), arrays);
    }
    paths
}
