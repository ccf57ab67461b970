//! What MongoDB's `explain` shows of the parts of a plan: scans, conditions, sorts.

use bson::{Bson, Document, doc};
use slate_query::{
    filter::Filter,
    interval::IntervalSet,
    pattern::Direction,
    raw::{Doc, Kind, Value, Writer},
    sort::Sort,
    work,
};

use super::{
    IndexScan,
    bounds_text::{Strings, bounds_text},
    shown_text::MAX_SHOWN,
};
use crate::catalog::IndexInfo;

/// Returns the fields of a scan of an index.
pub(super) fn index_scan(scan: &IndexScan) -> Document {
    let IndexScan { index, bounds, checks, direction, .. } = scan;
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

/// Returns the fields of an ascending scan of the index on `_id`.
pub(super) fn id_index_scan(bounds: &IntervalSet) -> Document {
    doc! {
        "keyPattern": { "_id": 1 },
        "indexName": "_id_",
        "isMultiKey": false,
        "multiKeyPaths": { "_id": [] },
        "isUnique": true,
        "isSparse": false,
        "isPartial": false,
        "indexVersion": 2,
        "direction": direction_name(Direction::Ascending),
        "indexBounds": { "_id": bounds_text(bounds, Direction::Ascending, Strings::Plain) },
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

pub(super) fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "forward",
        Direction::Descending => "backward",
    }
}

pub(super) fn sort_pattern(sort: &Sort) -> Document {
    sort.fields().iter().map(|(path, direction)| (path.as_str().to_owned(), direction.sign().into())).collect()
}

/// Returns a filter with an operator for each condition, as MongoDB shows it.
pub(super) fn condition(filter: &Filter) -> Document {
    with_operators(bson(Doc::new(&filter.to_document())))
}

/// Writes `{ a: 1 }` as `{ a: { $eq: 1 } }`.
pub(crate) fn with_operators(filter: Document) -> Document {
    let with_operator = |(name, value): (String, Bson)| {
        let value = match value {
            Bson::Array(branches) if name.starts_with('$') => Bson::Array(
                branches
                    .into_iter()
                    .map(|branch| match branch {
                        Bson::Document(branch) => with_operators(branch).into(),
                        other => other,
                    })
                    .collect(),
            ),
            value if name.starts_with('$') => value,
            Bson::Document(operators) if operators.keys().next().is_some_and(|first| first.starts_with('$')) => {
                operators.into()
            }
            Bson::RegularExpression(regex) => {
                let mut operators = doc! { "$regex": regex.pattern.as_str() };
                if !regex.options.as_str().is_empty() {
                    operators.insert("$options", regex.options.as_str());
                }
                operators.into()
            }
            value => doc! { "$eq": value }.into(),
        };
        (name, value)
    };
    filter.into_iter().map(with_operator).collect()
}

/// Whether a projection only names fields of the document, without paths and expressions.
pub(super) fn is_simple(projection: Doc<'_>) -> bool {
    let is_flag = |value: Value<'_>| {
        matches!(value.kind(), Kind::Boolean | Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal128)
    };
    projection.elements().all(|field| is_flag(field.value) && !field.name.contains(&b'.'))
}

/// Returns a document of the plan as BSON. A long one is shown by its length, in the form that MongoDB gives long commands in `currentOp`.
/// Returns an empty one if it is damaged, or once the call is over, because its explanation is dropped.
pub(crate) fn bson(document: Doc<'_>) -> Document {
    let length = document.bytes().len();
    if length > MAX_SHOWN {
        return doc! { "$truncated": format!("a document of {length} bytes") };
    }
    if work::take_copied(length).is_err() {
        return Document::new();
    }
    let raw = bson::RawDocument::from_bytes(document.bytes()).ok();
    raw.and_then(|raw| Document::try_from(raw).ok()).unwrap_or_default()
}

pub(super) fn value(value: Value<'_>) -> Bson {
    let mut writer = Writer::new();
    writer.append(b"v", value);
    let mut shown = bson(Doc::new(&writer.finish()));
    shown.remove("v").unwrap_or(Bson::Document(shown))
}
