//! The operators of filters, one file per family, and the tables of their names.
//!
//! A new operator is a file and a line in one of the tables, which are sorted by name. What MongoDB knows and Slate does
//! not offer stands in them too, and fails by name.

mod all;
mod bits;
mod compare;
mod constant;
mod elem_match;
mod equal;
mod exists;
mod logical;
mod membership;
mod modulo;
mod negation;
mod pathless;
mod regex;
mod size;
mod types;

pub(super) use equal::{has_one_spelling, implicit};
pub(super) use exists::node as exists;

use super::{Node, parse::Clause};
use crate::Result;

/// What an operator on a path's value parses to; `None` where it adds nothing by itself.
type Parse = fn(Clause<'_>) -> Result<Option<Node>>;

/// An operator that stands in a document of operators on a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum ForField {
    Known(Parse),
    Unsupported,
}

/// An operator that stands where a path may: among the fields of a filter.
#[derive(Clone, Copy, Debug)]
pub(super) enum ForDocument {
    Known(Parse),
    Unsupported,
}

const FOR_FIELD: &[(&str, ForField)] = &[
    ("$all", ForField::Known(all::parse)),
    ("$bitsAllClear", ForField::Known(bits::all_clear)),
    ("$bitsAllSet", ForField::Known(bits::all_set)),
    ("$bitsAnyClear", ForField::Known(bits::any_clear)),
    ("$bitsAnySet", ForField::Known(bits::any_set)),
    ("$elemMatch", ForField::Known(elem_match::parse)),
    ("$eq", ForField::Known(equal::parse)),
    ("$exists", ForField::Known(exists::parse)),
    ("$geoIntersects", ForField::Unsupported),
    ("$geoNear", ForField::Unsupported),
    ("$geoWithin", ForField::Unsupported),
    ("$gt", ForField::Known(compare::greater)),
    ("$gte", ForField::Known(compare::greater_or_equal)),
    ("$in", ForField::Known(membership::parse)),
    ("$lt", ForField::Known(compare::less)),
    ("$lte", ForField::Known(compare::less_or_equal)),
    ("$mod", ForField::Known(modulo::parse)),
    ("$ne", ForField::Known(equal::not_equal)),
    ("$near", ForField::Unsupported),
    ("$nearSphere", ForField::Unsupported),
    ("$nin", ForField::Known(membership::none_of)),
    ("$not", ForField::Known(negation::parse)),
    ("$options", ForField::Known(regex::options)),
    ("$regex", ForField::Known(regex::parse)),
    ("$size", ForField::Known(size::parse)),
    ("$type", ForField::Known(types::parse)),
    ("$where", ForField::Known(pathless::where_on_field)),
    ("$within", ForField::Unsupported),
];

const FOR_DOCUMENT: &[(&str, ForDocument)] = &[
    ("$alwaysFalse", ForDocument::Known(constant::always_false)),
    ("$alwaysTrue", ForDocument::Known(constant::always_true)),
    ("$and", ForDocument::Known(logical::and)),
    ("$comment", ForDocument::Known(constant::comment)),
    ("$db", ForDocument::Known(pathless::reference)),
    ("$expr", ForDocument::Known(pathless::expr)),
    ("$id", ForDocument::Known(pathless::reference)),
    ("$jsonSchema", ForDocument::Known(pathless::json_schema)),
    ("$nor", ForDocument::Known(logical::nor)),
    ("$or", ForDocument::Known(logical::or)),
    ("$ref", ForDocument::Known(pathless::reference)),
    ("$sampleRate", ForDocument::Known(pathless::sample_rate)),
    ("$text", ForDocument::Known(pathless::text)),
    ("$where", ForDocument::Known(pathless::where_)),
];

/// What MongoDB's server says to itself: known, and not offered.
const INTERNAL: &str = "$_internal";

/// Operators on a value that are no operators on a path by MongoDB's own word: before them, `$elemMatch` and `$pull` see
/// a document and not a value.
const LOGICAL_ON_FIELD: &[&str] = &["$not", "$where"];

pub(super) fn for_field(name: &str) -> Option<ForField> {
    let found = FOR_FIELD.binary_search_by_key(&name, |(name, _)| name).ok();
    let entry = found.and_then(|place| FOR_FIELD.get(place)).map(|(_, entry)| *entry);
    entry.or(name.starts_with(INTERNAL).then_some(ForField::Unsupported))
}

pub(super) fn for_document(name: &str) -> Option<ForDocument> {
    let found = FOR_DOCUMENT.binary_search_by_key(&name, |(name, _)| name).ok();
    let entry = found.and_then(|place| FOR_DOCUMENT.get(place)).map(|(_, entry)| *entry);
    entry.or(name.starts_with(INTERNAL).then_some(ForDocument::Unsupported))
}

/// Whether the name is an operator on a path, as MongoDB's parser asks where it tells operators from literals.
pub(super) fn is_for_field(name: &str) -> bool {
    for_field(name).is_some() && !LOGICAL_ON_FIELD.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_by_name() {
        assert!(FOR_FIELD.is_sorted_by_key(|(name, _)| name));
        assert!(FOR_DOCUMENT.is_sorted_by_key(|(name, _)| name));
    }
}
