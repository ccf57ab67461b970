//! What MongoDB's `explain` shows of the parts of nodes: conditions, sorts, documents.

use bson::{Bson, Document, doc};
use slate_query::{
    filter::Filter,
    pattern::Direction,
    raw::{Doc, Kind, Value, Writer},
    sort::Sort,
    work,
};

use super::shown_text::MAX_SHOWN;

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

/// Writes `{ a: 1 }` as `{ a: { $eq: 1 } }` and `{ a: /x/ }` as `{ a: { $regex: "x" } }`, also in the branches of `$and` and `$or`.
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

/// Returns a document of the plan as BSON. One above [`MAX_SHOWN`] bytes is shown by its length, as MongoDB shows long commands in
/// `currentOp`. Returns an empty one if it is damaged, or once the call is over, because its explanation is dropped.
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
