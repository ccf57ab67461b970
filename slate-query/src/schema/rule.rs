use std::cmp::Ordering;

use super::{Schema, in_name_order};
use crate::{
    number::Number,
    order,
    raw::{Doc, FieldName, Kind, OwnedValue, Value},
    regular_expression::Pattern,
    value_set::ValueSet,
    work,
};

/// One keyword of a schema with its operand, or several that belong together.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    /// `type` and `bsonType`.
    Type {
        keyword: &'static str,
        kinds: Vec<Kind>,
    },
    /// `enum`: the values, with the fields of documents in the order of their names.
    Enum(ValueSet<OwnedValue>),
    /// `minimum` and `maximum`.
    Limit {
        keyword: &'static str,
        limit: OwnedValue,
        violated_by: Ordering,
        excludes_limit: bool,
    },
    /// `multipleOf`.
    MultipleOf(Number),
    /// `minLength`, `maxLength`, in characters; `minItems`, `maxItems`; `minProperties`, `maxProperties`.
    Size {
        keyword: &'static str,
        of: Measured,
        limit: u64,
        violated_by: Ordering,
    },
    /// `pattern`.
    Pattern(Pattern),
    /// `uniqueItems: true`.
    UniqueItems,
    /// `items` as one schema.
    Items(Schema),
    /// `items` as a list of schemas, and `additionalItems`.
    ItemList {
        items: Vec<Schema>,
        additional: Additional,
    },
    /// `required`.
    Required(Vec<FieldName>),
    /// `properties`.
    Properties(Vec<(FieldName, Schema)>),
    /// `patternProperties`.
    PatternProperties(Vec<(Pattern, Schema)>),
    /// `additionalProperties`: the requirement for fields that neither `properties` nor `patternProperties` names.
    AdditionalProperties {
        names: Vec<FieldName>,
        patterns: Vec<Pattern>,
        additional: Additional,
    },
    /// `dependencies`.
    Dependencies(Vec<(FieldName, Dependency)>),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Schema),
}

/// What a size limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measured {
    Text,
    Array,
    Document,
}

/// The requirement for elements or fields without a schema of their own.
#[derive(Clone, Debug)]
pub(super) enum Additional {
    Forbidden,
    Schema(Schema),
}

/// The requirement for documents that have a certain field.
#[derive(Clone, Debug)]
pub(super) enum Dependency {
    Fields(Vec<FieldName>),
    Schema(Schema),
}

impl Rule {
    pub(super) fn accepts(&self, value: Value<'_>) -> bool {
        match self {
            Self::Type { kinds, .. } => kinds.contains(&value.kind()),
            Self::Enum(values) => {
                work::spend(work::of_bytes(value.bytes().len()));
                values.contains(in_name_order(value).as_value())
            }
            Self::Limit { limit, violated_by, excludes_limit, .. } => {
                if !value.kind().is_number() {
                    return true;
                }
                match order::compare(value, limit.as_value()) {
                    // NaN is below all numbers in the order, but no number is below or above it.
                    _ if Number::of(value).is_some_and(Number::is_nan) => false,
                    Ordering::Equal => !excludes_limit,
                    order => order != *violated_by,
                }
            }
            Self::MultipleOf(divisor) => Number::of(value).is_none_or(|number| {
                let rest = number.modulo(*divisor);
                number.is_finite() && !rest.is_nan() && rest.signum() == Ordering::Equal
            }),
            Self::Size { of, limit, violated_by, .. } => {
                of.measure(value).is_none_or(|size| size.cmp(limit) != *violated_by)
            }
            Self::Pattern(pattern) => text(value).is_none_or(|text| pattern.holds(text)),
            Self::UniqueItems => value.as_array().is_none_or(|array| duplicate(array).is_none()),
            Self::Items(schema) => {
                let spend = || work::spend(work::of_bytes(value.bytes().len()));
                value.as_array().is_none_or(|array| spend() && array.values().all(|element| schema.accepts(element)))
            }
            Self::ItemList { items, additional } => value.as_array().is_none_or(|array| {
                items.iter().zip(array.values()).all(|(schema, element)| schema.accepts(element))
                    && array.values().skip(items.len()).all(|element| additional.accepts(element))
            }),
            Self::Required(names) => {
                value.as_document().is_none_or(|document| names.iter().all(|name| document.find(name).is_some()))
            }
            Self::Properties(properties) => value.as_document().is_none_or(|document| {
                let accepts = |(name, schema): &(FieldName, Schema)| {
                    document.find(name).is_none_or(|value| schema.accepts(value))
                };
                properties.iter().all(accepts)
            }),
            Self::PatternProperties(patterns) => value.as_document().is_none_or(|document| {
                work::spend(work::of_bytes(document.bytes().len()));
                document.elements().all(|field| {
                    let concerns = |pattern: &Pattern| pattern.holds(field.name);
                    patterns.iter().all(|(pattern, schema)| !concerns(pattern) || schema.accepts(field.value))
                })
            }),
            Self::AdditionalProperties { names, patterns, additional } => value.as_document().is_none_or(|document| {
                let is_additional = |name: &[u8]| is_additional(name, names, patterns);
                document.elements().all(|field| !is_additional(field.name) || additional.accepts(field.value))
            }),
            Self::Dependencies(dependencies) => value.as_document().is_none_or(|document| {
                dependencies.iter().all(|(name, dependency)| {
                    document.find(name).is_none()
                        || match dependency {
                            Dependency::Fields(names) => names.iter().all(|name| document.find(name).is_some()),
                            Dependency::Schema(schema) => schema.accepts(value),
                        }
                })
            }),
            Self::AllOf(schemas) => schemas.iter().all(|schema| schema.accepts(value)),
            Self::AnyOf(schemas) => schemas.iter().any(|schema| schema.accepts(value)),
            Self::OneOf(schemas) => schemas.iter().filter(|schema| schema.accepts(value)).take(2).count() == 1,
            Self::Not(schema) => !schema.accepts(value),
        }
    }
}

impl Rule {
    /// Returns whether a pattern needs backtracking.
    pub(super) fn can_fail(&self) -> bool {
        match self {
            Self::Pattern(pattern) => pattern.can_fail(),
            Self::Items(schema) | Self::Not(schema) => schema.can_fail(),
            Self::ItemList { items, additional } => items.iter().any(Schema::can_fail) || additional.can_fail(),
            Self::Properties(properties) => properties.iter().any(|(_, schema)| schema.can_fail()),
            Self::PatternProperties(properties) => {
                properties.iter().any(|(pattern, schema)| pattern.can_fail() || schema.can_fail())
            }
            Self::AdditionalProperties { patterns, additional, .. } => {
                patterns.iter().any(Pattern::can_fail) || additional.can_fail()
            }
            Self::Dependencies(dependencies) => dependencies
                .iter()
                .any(|(_, dependency)| matches!(dependency, Dependency::Schema(schema) if schema.can_fail())),
            Self::AllOf(schemas) | Self::AnyOf(schemas) | Self::OneOf(schemas) => schemas.iter().any(Schema::can_fail),
            Self::Type { .. }
            | Self::Enum(_)
            | Self::Limit { .. }
            | Self::MultipleOf(_)
            | Self::Size { .. }
            | Self::UniqueItems
            | Self::Required(_) => false,
        }
    }
}

impl Measured {
    /// Returns the size; `None` for values of other types.
    pub(super) fn measure(self, value: Value<'_>) -> Option<u64> {
        let size = match self {
            Self::Text => String::from_utf8_lossy(text(value)?).chars().count(),
            Self::Array => value.as_array()?.values().count(),
            Self::Document => value.as_document()?.elements().count(),
        };
        work::spend(work::of_bytes(value.bytes().len()));
        u64::try_from(size).ok()
    }
}

impl Additional {
    fn can_fail(&self) -> bool {
        matches!(self, Self::Schema(schema) if schema.can_fail())
    }

    pub(super) fn accepts(&self, value: Value<'_>) -> bool {
        match self {
            Self::Forbidden => false,
            Self::Schema(schema) => schema.accepts(value),
        }
    }
}

/// Returns whether the field is named by none of the names and matched by none of the patterns.
pub(super) fn is_additional(name: &[u8], names: &[FieldName], patterns: &[Pattern]) -> bool {
    work::spend(1 + names.len() / 8)
        && names.iter().all(|known| known.as_bytes() != name)
        && patterns.iter().all(|pattern| !pattern.holds(name))
}

/// Returns the text of a string. As in MongoDB, symbols and code do not count as strings.
fn text(value: Value<'_>) -> Option<&[u8]> {
    if value.kind() == Kind::String { value.text() } else { None }
}

/// Returns an element that is equal to another one; `None` if all are different.
pub(super) fn duplicate(array: Doc<'_>) -> Option<OwnedValue> {
    work::spend(work::of_bytes(array.bytes().len()));
    let mut values: Vec<OwnedValue> = array.values().map(in_name_order).collect();
    work::sort_by(&mut values, |a, b| order::compare(a.as_value(), b.as_value()));
    let pair = values.windows(2).find(|pair| matches!(pair, [a, b] if order::equal(a.as_value(), b.as_value())))?;
    pair.first().cloned()
}
