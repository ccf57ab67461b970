//! Explains which rules a document violates, in the form of MongoDB's validation errors.

use super::{
    Schema, in_name_order,
    rule::{Additional, Dependency, Rule, duplicate, is_additional},
};
use crate::raw::{Doc, FieldName, Kind, Value, Writer};

/// The size of an explanation in bytes from which on it shows no further values and names. At twice this size no further violation is begun, and a
/// violation that ends beyond three times this size is left out.
const MAX_EXPLAINED: usize = 256 << 10;

/// Returns whether this many bytes of a document, a schema or a filter can be shown.
pub(crate) fn fits(bytes: usize, out: &Writer) -> bool {
    out.len() + bytes <= MAX_EXPLAINED
}

/// Appends a value, if it fits.
pub(crate) fn append_fitting(name: &[u8], value: Value<'_>, out: &mut Writer) {
    if fits(value.bytes().len(), out) {
        out.append(name, value);
    }
}

/// Appends values as an array up to the first that does not fit. Returns `false` if one did not.
pub(crate) fn append_values<'v>(name: &str, values: impl Iterator<Item = Value<'v>>, out: &mut Writer) -> bool {
    out.open_array(name.as_bytes());
    let mut all = true;
    for (place, value) in values.enumerate() {
        all = fits(value.bytes().len(), out);
        if !all {
            break;
        }
        out.append(place.to_string().as_bytes(), value);
    }
    out.close();
    all
}

/// Appends an array of names up to the first that does not fit.
fn append_names<N: AsRef<str>>(name: &str, names: impl Iterator<Item = N>, out: &mut Writer) {
    out.open_array(name.as_bytes());
    for (place, name) in names.enumerate() {
        if !fits(name.as_ref().len(), out) {
            break;
        }
        out.append_str(&place.to_string(), name.as_ref());
    }
    out.close();
}

/// Appends an array of the documents that `write` writes, until the explanation is too long; see [`MAX_EXPLAINED`].
pub(crate) fn list<T>(name: &str, items: impl Iterator<Item = T>, out: &mut Writer, write: impl Fn(T, &mut Writer)) {
    out.open_array(name.as_bytes());
    for (place, item) in items.enumerate() {
        if out.len() > 2 * MAX_EXPLAINED {
            break;
        }
        let before = out.checkpoint();
        out.open_document(place.to_string().as_bytes());
        write(item, out);
        out.close();
        if out.len() > 3 * MAX_EXPLAINED {
            out.rollback(before);
            break;
        }
    }
    out.close();
}

impl Schema {
    /// Appends the fields `operatorName`, `title`, `description` and `schemaRulesNotSatisfied` for a document that does not satisfy the
    /// schema.
    pub fn explain(&self, document: Doc<'_>, out: &mut Writer) {
        out.append_str("operatorName", "$jsonSchema");
        self.annotate(out);
        self.violations("schemaRulesNotSatisfied", Value::new(Kind::Document, document.bytes()), out);
    }

    /// Appends the title and the description of the schema.
    fn annotate(&self, out: &mut Writer) {
        for name in ["title", "description"] {
            self.part(name).into_iter().for_each(|value| append_fitting(name.as_bytes(), value, out));
        }
    }

    /// Appends the array of the violated rules.
    fn violations(&self, name: &str, value: Value<'_>, out: &mut Writer) {
        let violated = self.rules.iter().filter(|rule| !rule.accepts(value));
        list(name, violated, out, |rule, out| self.violation(rule, value, out));
    }

    fn violation(&self, rule: &Rule, value: Value<'_>, out: &mut Writer) {
        out.append_str("operatorName", rule.keyword());
        let reason = |out: &mut Writer, reason: &str| out.append_str("reason", reason);
        let considered = |out: &mut Writer| append_fitting(b"consideredValue", value, out);
        match rule {
            Rule::Type { .. } => {
                self.specified(&[rule.keyword()], out);
                reason(out, "type did not match");
                considered(out);
                out.append_str("consideredType", value.kind().alias());
            }
            Rule::Enum(_) => {
                self.specified(&["enum"], out);
                reason(out, "value was not found in enum");
                considered(out);
            }
            Rule::Limit { keyword, .. } => {
                let excludes = if *keyword == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
                self.specified(&[keyword, excludes], out);
                reason(out, "comparison failed");
                considered(out);
            }
            Rule::MultipleOf(_) => {
                self.specified(&["multipleOf"], out);
                reason(out, "considered value is not a multiple of the specified value");
                considered(out);
            }
            Rule::Size { keyword, of, .. } => {
                self.specified(&[keyword], out);
                match *keyword {
                    "minLength" | "maxLength" => reason(out, "specified string length was not satisfied"),
                    "minItems" | "maxItems" => reason(out, "array did not match specified length"),
                    _ => {
                        reason(out, "specified number of properties was not satisfied");
                        return number(out, "numberOfProperties", of.measure(value).unwrap_or_default());
                    }
                }
                considered(out);
            }
            Rule::Pattern(_) => {
                self.specified(&["pattern"], out);
                reason(out, "regular expression did not match");
                considered(out);
            }
            Rule::UniqueItems => {
                self.specified(&["uniqueItems"], out);
                reason(out, "found a duplicate item");
                considered(out);
                let repeated = value.as_array().and_then(|array| {
                    let repeated = duplicate(array)?;
                    let is_it = |element: &Value<'_>| in_name_order(*element).as_value() == repeated.as_value();
                    array.values().find(is_it)
                });
                repeated.into_iter().for_each(|repeated| append_fitting(b"duplicatedValue", repeated, out));
            }
            Rule::Items(schema) => {
                reason(out, "At least one item did not match the sub-schema");
                failing_item(value, 0, |element| (!schema.accepts(element)).then_some(schema), out);
            }
            Rule::ItemList { items, additional } => self.item_list(items, additional, value, out),
            Rule::Required(names) => {
                self.specified(&["required"], out);
                missing(names, value, out);
            }
            Rule::Properties(properties) => {
                let found = properties.iter().filter_map(|(name, schema)| {
                    let value = value.as_document()?.find(name)?;
                    (!schema.accepts(value)).then_some((name, schema, value))
                });
                list("propertiesNotSatisfied", found, out, |(name, schema, value), out| {
                    out.append_str("propertyName", name.as_str());
                    schema.annotate(out);
                    schema.violations("details", value, out);
                });
            }
            Rule::PatternProperties(patterns) => {
                let fields = || value.as_document().into_iter().flat_map(Doc::elements);
                let found = patterns.iter().flat_map(|(pattern, schema)| {
                    let violates = move |field: &crate::raw::Element<'_>| {
                        pattern.holds(field.name) && !schema.accepts(field.value)
                    };
                    fields().filter(violates).map(move |field| (pattern, schema, field))
                });
                list("details", found, out, |(pattern, schema, field), out| {
                    out.append_str("propertyName", &field.display_name());
                    out.append_str("regexMatched", pattern.source());
                    schema.violations("details", field.value, out);
                });
            }
            Rule::AdditionalProperties { names, patterns, additional } => {
                let fields = value.as_document().into_iter().flat_map(Doc::elements);
                let mut fields = fields.filter(|field| is_additional(field.name, names, patterns));
                match additional {
                    Additional::Forbidden => {
                        self.specified(&["additionalProperties"], out);
                        append_names(
                            "additionalProperties",
                            fields.map(|field| field.display_name().into_owned()),
                            out,
                        );
                    }
                    Additional::Schema(schema) => {
                        reason(out, "at least one additional property did not match the subschema");
                        if let Some(field) = fields.find(|field| !schema.accepts(field.value)) {
                            out.append_str("failingProperty", &field.display_name());
                            schema.violations("details", field.value, out);
                        }
                    }
                }
            }
            Rule::Dependencies(dependencies) => {
                let violated = dependencies.iter().filter(|(name, dependency)| {
                    let Some(document) = value.as_document().filter(|document| document.find(name).is_some()) else {
                        return false;
                    };
                    match dependency {
                        Dependency::Fields(names) => names.iter().any(|name| document.find(name).is_none()),
                        Dependency::Schema(schema) => !schema.accepts(value),
                    }
                });
                list("failingDependencies", violated, out, |(name, dependency), out| {
                    out.append_str("conditionalProperty", name.as_str());
                    match dependency {
                        Dependency::Fields(names) => missing(names, value, out),
                        Dependency::Schema(schema) => schema.violations("details", value, out),
                    }
                });
            }
            Rule::AllOf(schemas) | Rule::AnyOf(schemas) => not_satisfied(schemas, value, out),
            Rule::OneOf(schemas) => {
                let matching: Vec<usize> =
                    schemas.iter().enumerate().filter(|(_, schema)| schema.accepts(value)).map(|(at, _)| at).collect();
                if matching.is_empty() {
                    return not_satisfied(schemas, value, out);
                }
                reason(out, "more than one subschema matched");
                out.open_array(b"matchingSchemaIndexes");
                for (place, index) in matching.iter().enumerate() {
                    number(out, &place.to_string(), u64::try_from(*index).unwrap_or_default());
                }
                out.close();
            }
            Rule::Not(_) => reason(out, "child expression matched"),
        }
    }

    fn item_list(&self, items: &[Schema], additional: &Additional, value: Value<'_>, out: &mut Writer) {
        let elements = || value.as_array().into_iter().flat_map(Doc::values);
        let violated = || {
            let pairs = items.iter().zip(elements()).enumerate();
            pairs.filter(|(_, (schema, element))| !schema.accepts(*element))
        };
        if violated().next().is_some() {
            return list("details", violated(), out, |(index, (schema, element)), out| {
                number(out, "itemIndex", u64::try_from(index).unwrap_or_default());
                schema.violations("details", element, out);
            });
        }
        match additional {
            Additional::Forbidden => {
                self.specified(&["additionalItems"], out);
                out.append_str("reason", "found additional items");
                append_values("additionalItems", elements().skip(items.len()), out);
            }
            Additional::Schema(schema) => {
                out.append_str("reason", "At least one additional item did not match the sub-schema");
                failing_item(value, items.len(), |element| (!schema.accepts(element)).then_some(schema), out);
            }
        }
    }

    /// Appends `specifiedAs` with these parts of the schema.
    fn specified(&self, names: &[&str], out: &mut Writer) {
        out.open_document(b"specifiedAs");
        for name in names {
            self.part(name).into_iter().for_each(|value| append_fitting(name.as_bytes(), value, out));
        }
        out.close();
    }
}

impl Rule {
    /// Returns the keyword whose violation is reported.
    fn keyword(&self) -> &'static str {
        match self {
            Self::Type { keyword, .. } | Self::Limit { keyword, .. } | Self::Size { keyword, .. } => keyword,
            Self::Enum(_) => "enum",
            Self::MultipleOf(_) => "multipleOf",
            Self::Pattern(_) => "pattern",
            Self::UniqueItems => "uniqueItems",
            Self::Items(_) | Self::ItemList { .. } => "items",
            Self::Required(_) => "required",
            Self::Properties(_) => "properties",
            Self::PatternProperties(_) => "patternProperties",
            Self::AdditionalProperties { .. } => "additionalProperties",
            Self::Dependencies(_) => "dependencies",
            Self::AllOf(_) => "allOf",
            Self::AnyOf(_) => "anyOf",
            Self::OneOf(_) => "oneOf",
            Self::Not(_) => "not",
        }
    }
}

fn not_satisfied(schemas: &[Schema], value: Value<'_>, out: &mut Writer) {
    let violated = schemas.iter().enumerate().filter(|(_, schema)| !schema.accepts(value));
    list("schemasNotSatisfied", violated, out, |(index, schema), out| {
        number(out, "index", u64::try_from(index).unwrap_or_default());
        schema.violations("details", value, out);
    });
}

/// Appends the position of the first element from `first` on that violates a schema, and the rules that it violates.
fn failing_item<'s>(
    value: Value<'_>,
    first: usize,
    violated: impl Fn(Value<'_>) -> Option<&'s Schema>,
    out: &mut Writer,
) {
    let mut elements = value.as_array().into_iter().flat_map(Doc::values).enumerate().skip(first);
    let found = elements.find_map(|(index, element)| Some((index, element, violated(element)?)));
    if let Some((index, element, schema)) = found {
        number(out, "itemIndex", u64::try_from(index).unwrap_or_default());
        schema.violations("details", element, out);
    }
}

fn missing(names: &[FieldName], value: Value<'_>, out: &mut Writer) {
    let is_missing = |name: &&FieldName| value.as_document().is_none_or(|document| document.find(name).is_none());
    append_names("missingProperties", names.iter().filter(is_missing).map(FieldName::as_str), out);
}

fn number(out: &mut Writer, name: &str, value: u64) {
    let value = i32::try_from(value).unwrap_or(i32::MAX).to_le_bytes();
    out.append(name.as_bytes(), Value::new(Kind::Int32, &value));
}
