use std::{cmp::Ordering, collections::HashSet};

use super::{
    Schema, in_name_order,
    rule::{Additional, Dependency, Measured, Rule},
};
use crate::{
    Code, Error, Result,
    number::Number,
    raw::{Doc, FieldName, Kind, MAX_DEPTH, Value},
    regular_expression::Pattern,
    value_set::ValueSet,
    work,
};

/// All keywords that MongoDB has, sorted.
const KEYWORDS: [&str; 31] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "bsonType",
    "dependencies",
    "description",
    "encrypt",
    "encryptMetadata",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// Keywords of JSON schema that MongoDB rejects.
const REFUSED: [&str; 6] = ["$ref", "$schema", "default", "definitions", "format", "id"];

/// The names of `type`, with the names of `bsonType` that they mean.
const JSON_TYPES: [(&str, &str); 6] = [
    ("array", "array"),
    ("boolean", "bool"),
    ("null", "null"),
    ("number", "number"),
    ("object", "object"),
    ("string", "string"),
];

impl Schema {
    /// Parses a schema.
    ///
    /// # Errors
    /// MongoDB's codes: `FailedToParse` (9) for unknown keywords and operands out of range, `TypeMismatch` (14) for operands of a wrong
    /// type, `BadValue` (2) for unknown types; `NotImplemented` (238) for encryption.
    pub fn parse(schema: Doc<'_>) -> Result<Self> {
        parse(Value::new(Kind::Document, schema.bytes()), 0)
    }
}

fn parse(source: Value<'_>, depth: usize) -> Result<Schema> {
    if depth > MAX_DEPTH {
        return Err(Error::new(Code::OVERFLOW, format!("schemas may nest at most {MAX_DEPTH} deep")));
    }
    let document = source.as_document().ok_or_else(|| mistyped("$jsonSchema", "an object"))?;
    // The keywords are looked up one after the other.
    work::take(KEYWORDS.len() + work::of_bytes(document.bytes().len()))?;
    for element in document.elements() {
        let name = element.display_name();
        if REFUSED.contains(&&*name) {
            return Err(failed(&name, "is not currently supported"));
        }
        if KEYWORDS.binary_search(&&*name).is_err() {
            return Err(Error::new(Code::FAILED_TO_PARSE, format!("Unknown $jsonSchema keyword: {name}")));
        }
        if name.starts_with("encrypt") {
            return Err(Error::unsupported(&name));
        }
    }
    let parser = Parser { document, depth };
    let mut rules = Vec::new();
    parser.logical(&mut rules).map_err(locate)?;
    parser.of_arrays(&mut rules).map_err(locate)?;
    parser.of_documents(&mut rules).map_err(locate)?;
    parser.of_scalars(&mut rules).map_err(locate)?;
    Ok(Schema { source: source.to_owned(), rules })
}

fn locate(error: Error) -> Error {
    error.at("$jsonSchema")
}

/// The keywords of one schema.
struct Parser<'s> {
    document: Doc<'s>,
    depth: usize,
}

impl<'s> Parser<'s> {
    fn get(&self, name: &str) -> Option<Value<'s>> {
        self.document.get(name)
    }

    fn schema(&self, value: Value<'_>, name: &str) -> Result<Schema> {
        match value.kind() {
            Kind::Document => parse(value, self.depth + 1),
            _ => Err(mistyped(name, "an object")),
        }
    }

    fn schemas(&self, name: &str) -> Result<Option<Vec<Schema>>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let array = value.as_array().ok_or_else(|| mistyped(name, "an array"))?;
        let schemas: Vec<Schema> = array.values().map(|value| self.schema(value, name)).collect::<Result<_>>()?;
        if schemas.is_empty() {
            return Err(Error::new(Code::BAD_VALUE, format!("$jsonSchema keyword '{name}' must be a non-empty array")));
        }
        Ok(Some(schemas))
    }

    fn logical(&self, rules: &mut Vec<Rule>) -> Result<()> {
        rules.extend(self.schemas("allOf")?.map(Rule::AllOf));
        rules.extend(self.schemas("anyOf")?.map(Rule::AnyOf));
        rules.extend(self.schemas("oneOf")?.map(Rule::OneOf));
        let not = self.get("not").map(|value| self.schema(value, "not")).transpose()?;
        rules.extend(not.map(Rule::Not));
        if let Some(values) = self.get("enum") {
            let values = values.as_array().ok_or_else(|| mistyped("enum", "an array"))?;
            let values: Vec<_> = values.values().map(in_name_order).collect();
            if values.is_empty() {
                return Err(failed("enum", "cannot be an empty array"));
            }
            let given = values.len();
            let values: ValueSet<_> = values.into_iter().collect();
            if values.as_slice().len() < given {
                return Err(failed("enum", "array cannot contain duplicate values"));
            }
            rules.push(Rule::Enum(values));
        }
        Ok(())
    }

    fn of_arrays(&self, rules: &mut Vec<Rule>) -> Result<()> {
        self.size("minItems", Measured::Array, Ordering::Less, rules)?;
        self.size("maxItems", Measured::Array, Ordering::Greater, rules)?;
        if let Some(unique) = self.get("uniqueItems") {
            let is_unique = unique.as_bool().ok_or_else(|| mistyped("uniqueItems", "a boolean"))?;
            rules.extend(is_unique.then_some(Rule::UniqueItems));
        }
        let additional = self.additional("additionalItems")?;
        let Some(items) = self.get("items") else { return Ok(()) };
        rules.push(match items.as_array() {
            Some(items) => {
                let items: Vec<Schema> =
                    items.values().map(|value| self.schema(value, "items")).collect::<Result<_>>()?;
                match additional {
                    Some(additional) => Rule::ItemList { items, additional },
                    None => Rule::ItemList { items, additional: Additional::Schema(anything()) },
                }
            }
            None => Rule::Items(self.schema(items, "items")?),
        });
        Ok(())
    }

    /// Returns what `additionalItems` or `additionalProperties` requires: a boolean or a schema. `None` where
    /// everything is allowed.
    fn additional(&self, name: &str) -> Result<Option<Additional>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match (value.as_bool(), value.kind()) {
            (Some(true), _) => Ok(None),
            (Some(false), _) => Ok(Some(Additional::Forbidden)),
            (None, Kind::Document) => self.schema(value, name).map(Additional::Schema).map(Some),
            _ => Err(mistyped(name, "an object or a boolean")),
        }
    }

    fn of_documents(&self, rules: &mut Vec<Rule>) -> Result<()> {
        let mut names = Vec::new();
        if let Some(properties) = self.fields("properties")? {
            let properties = properties.elements().map(|field| {
                let schema = self.schema(field.value, &format!("properties.{}", field.display_name()))?;
                Ok((FieldName::new(&field.display_name()), schema))
            });
            let properties: Vec<(FieldName, Schema)> = properties.collect::<Result<_>>()?;
            names.extend(properties.iter().map(|(name, _)| name.clone()));
            rules.push(Rule::Properties(properties));
        }
        let mut patterns = Vec::new();
        if let Some(properties) = self.fields("patternProperties")? {
            let properties = properties.elements().map(|field| {
                let schema = self.schema(field.value, &format!("patternProperties.{}", field.display_name()))?;
                Ok((Pattern::new(field.name, b"")?, schema))
            });
            let properties: Vec<(Pattern, Schema)> = properties.collect::<Result<_>>()?;
            patterns.extend(properties.iter().map(|(pattern, _)| pattern.clone()));
            rules.push(Rule::PatternProperties(properties));
        }
        let additional = self.additional("additionalProperties")?;
        rules.extend(additional.map(|additional| Rule::AdditionalProperties { names, patterns, additional }));
        if let Some(required) = self.get("required") {
            rules.push(Rule::Required(field_names("required", required)?));
        }
        self.size("minProperties", Measured::Document, Ordering::Less, rules)?;
        self.size("maxProperties", Measured::Document, Ordering::Greater, rules)?;
        if let Some(dependencies) = self.fields("dependencies")? {
            let dependencies = dependencies.elements().map(|field| {
                let name = format!("dependencies.{}", field.display_name());
                let dependency = match field.value.kind() {
                    Kind::Array => Dependency::Fields(field_names(&name, field.value)?),
                    Kind::Document => Dependency::Schema(self.schema(field.value, &name)?),
                    _ => return Err(mistyped(&name, "an object or an array")),
                };
                Ok((FieldName::new(&field.display_name()), dependency))
            });
            rules.push(Rule::Dependencies(dependencies.collect::<Result<_>>()?));
        }
        Ok(())
    }

    fn fields(&self, name: &str) -> Result<Option<Doc<'s>>> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_document().map(Some).ok_or_else(|| mistyped(name, "an object"))
    }

    fn of_scalars(&self, rules: &mut Vec<Rule>) -> Result<()> {
        for name in ["title", "description"] {
            if self.get(name).is_some_and(|value| value.kind() != Kind::String) {
                return Err(mistyped(name, "a string"));
            }
        }
        self.limit("minimum", "exclusiveMinimum", Ordering::Less, rules)?;
        self.limit("maximum", "exclusiveMaximum", Ordering::Greater, rules)?;
        self.size("minLength", Measured::Text, Ordering::Less, rules)?;
        self.size("maxLength", Measured::Text, Ordering::Greater, rules)?;
        if let Some(pattern) = self.get("pattern") {
            let text = pattern.text().filter(|_| pattern.kind() == Kind::String);
            rules.push(Rule::Pattern(Pattern::new(text.ok_or_else(|| mistyped("pattern", "a string"))?, b"")?));
        }
        if let Some(divisor) = self.get("multipleOf") {
            let divisor = Number::of(divisor).ok_or_else(|| mistyped("multipleOf", "a number"))?;
            if divisor.is_nan() || divisor.signum() != Ordering::Greater {
                return Err(failed("multipleOf", "must have a positive value"));
            }
            rules.push(Rule::MultipleOf(divisor));
        }
        match (self.get("type"), self.get("bsonType")) {
            (Some(_), Some(_)) => {
                let message = "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'";
                return Err(Error::new(Code::FAILED_TO_PARSE, message));
            }
            (Some(types), None) => rules.push(Rule::Type { keyword: "type", kinds: kinds("type", types)? }),
            (None, Some(types)) => rules.push(Rule::Type { keyword: "bsonType", kinds: kinds("bsonType", types)? }),
            (None, None) => {}
        }
        Ok(())
    }

    fn limit(&self, name: &'static str, excludes: &str, violated_by: Ordering, rules: &mut Vec<Rule>) -> Result<()> {
        let limit = self.get(name);
        let excluded = self.get(excludes);
        if let Some(excluded) = excluded {
            if excluded.kind() != Kind::Boolean {
                return Err(mistyped(excludes, "a boolean"));
            }
            if limit.is_none() {
                let message = format!("'{name}' must be present if '{excludes}' is specified");
                return Err(Error::new(Code::FAILED_TO_PARSE, format!("$jsonSchema keyword {message}")));
            }
        }
        let Some(limit) = limit else { return Ok(()) };
        if !limit.kind().is_number() {
            return Err(mistyped(name, "a number"));
        }
        let excludes_limit = excluded.and_then(Value::as_bool).unwrap_or_default();
        rules.push(Rule::Limit { keyword: name, limit: limit.to_owned(), violated_by, excludes_limit });
        Ok(())
    }

    fn size(&self, keyword: &'static str, of: Measured, violated_by: Ordering, rules: &mut Vec<Rule>) -> Result<()> {
        let Some(limit) = self.get(keyword) else { return Ok(()) };
        let number = Number::of(limit).ok_or_else(|| mistyped(keyword, "a number"))?;
        let limit = number.to_i64().and_then(|limit| u64::try_from(limit).ok());
        let limit = limit.ok_or_else(|| failed(keyword, "must be a non-negative integer"))?;
        rules.push(Rule::Size { keyword, of, limit, violated_by });
        Ok(())
    }
}

/// Returns the schema without rules.
fn anything() -> Schema {
    Schema { source: Value::new(Kind::Document, Doc::EMPTY.bytes()).to_owned(), rules: Vec::new() }
}

/// Returns the names in an array. Fails if there are none, or if a name is repeated or contains a NUL byte.
fn field_names(keyword: &str, value: Value<'_>) -> Result<Vec<FieldName>> {
    let array = value.as_array().ok_or_else(|| mistyped(keyword, "an array"))?;
    let (mut names, mut known) = (Vec::<&str>::new(), HashSet::new());
    for value in array.values() {
        let name = value.as_str().filter(|_| value.kind() == Kind::String);
        let name = name.ok_or_else(|| mistyped(keyword, "an array of strings"))?;
        if name.contains('\0') {
            let message = format!("$jsonSchema keyword '{keyword}' cannot contain field names with NUL bytes");
            return Err(Error::new(Code(9_867_600), message).at(keyword));
        }
        if !known.insert(name) {
            return Err(failed(keyword, "array cannot contain duplicate values"));
        }
        names.push(name);
    }
    if names.is_empty() {
        return Err(failed(keyword, "cannot be an empty array"));
    }
    Ok(names.into_iter().map(FieldName::new).collect())
}

/// Returns the types that `type` or `bsonType` names.
fn kinds(keyword: &str, types: Value<'_>) -> Result<Vec<Kind>> {
    let mut names: Vec<&str> = Vec::new();
    let mut add = |value: Value<'_>| match value.kind() {
        Kind::String => Ok(()),
        _ => Err(mistyped(keyword, "either a string or an array of strings")),
    };
    match types.as_array() {
        Some(array) => array.values().try_for_each(&mut add)?,
        None => add(types)?,
    }
    match types.as_array() {
        Some(array) => names.extend(array.values().filter_map(Value::as_str)),
        None => names.extend(types.as_str()),
    }
    if names.is_empty() {
        return Err(failed(keyword, "must name at least one type"));
    }
    let mut kinds = Vec::new();
    for (place, name) in names.iter().enumerate() {
        if names.iter().take(place).any(|other| other == name) {
            return Err(failed(keyword, &format!("has duplicate value: '{name}'")));
        }
        let unknown = || Error::new(Code::BAD_VALUE, format!("Unknown type name alias: {name}"));
        let alias = match keyword {
            "type" if *name == "integer" => return Err(failed("type", "'integer' is not currently supported.")),
            "type" => JSON_TYPES.iter().find(|(json, _)| json == name).map(|(_, alias)| *alias).ok_or_else(unknown)?,
            _ => name,
        };
        match alias {
            "number" => kinds.extend(Kind::ALL.iter().filter(|kind| kind.is_number())),
            alias => kinds.push(*Kind::ALL.iter().find(|kind| kind.alias() == alias).ok_or_else(unknown)?),
        }
    }
    Ok(kinds)
}

fn mistyped(keyword: &str, what: &str) -> Error {
    Error::new(Code::TYPE_MISMATCH, format!("$jsonSchema keyword '{keyword}' must be {what}"))
}

fn failed(keyword: &str, why: &str) -> Error {
    Error::new(Code::FAILED_TO_PARSE, format!("$jsonSchema keyword '{keyword}' {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keywords_are_sorted() {
        assert!(KEYWORDS.is_sorted() && REFUSED.is_sorted());
    }
}
