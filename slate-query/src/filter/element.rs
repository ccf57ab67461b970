use super::{Node, parse};
use crate::{
    Code, Error, Result,
    path::Path,
    raw::{Doc, Kind, OwnedValue, Value},
};

/// A condition on one value instead of a document: what `$pull`, `arrayFilters` and `$elemMatch` ask of an element.
#[derive(Clone, Debug)]
pub struct ElementFilter {
    condition: Condition,
}

#[derive(Clone, Debug)]
enum Condition {
    /// The value is equal.
    Equal(OwnedValue),
    /// The value is a document that matches.
    Document(Node),
    /// The value matches as a field that holds it would: of an array, an element may.
    Field(Node),
}

impl ElementFilter {
    /// Parses a condition as `$pull` takes it: a document of operators on a value (`{$gt: 5}`) or a regular expression is
    /// asked of the value itself; any other document is a filter that the value, a document, must match
    /// (`{qty: {$gt: 5}}`); anything else asks for equality.
    ///
    /// # Errors
    /// As [`super::Filter::parse`].
    pub fn parse(condition: Value<'_>) -> Result<Self> {
        let condition = match condition.as_document() {
            Some(document) if parse::begins_with_operator(document) => Condition::Field(parse::operators(document)?),
            Some(document) => Condition::Document(parse::document(document, parse::Scope::whole_document())?),
            None if condition.kind() == Kind::Regex => Condition::Field(parse::equality_or_regex(condition)?),
            None => Condition::Equal(condition.to_owned()),
        };
        Ok(Self { condition })
    }

    /// Parses a filter on elements as `arrayFilters` takes it: a filter all of whose paths begin with one name, which
    /// stands for the element (`{"item.qty": {$gt: 5}}`). Gives that name and the condition.
    ///
    /// # Errors
    /// As [`super::Filter::parse`]; `FailedToParse` (9) where the paths begin with no name or with several; `BadValue` (2)
    /// where the name does not begin with a lowercase letter or holds more than letters and digits.
    pub fn parse_named(filter: Doc<'_>) -> Result<(Box<str>, Self)> {
        let root = parse::document(filter, parse::Scope::whole_document())?;
        let mut names = Vec::new();
        first_names(&root, &mut names);
        let name = match names.as_slice() {
            [] => {
                let message = "Cannot use an expression without a top-level field name in arrayFilters";
                return Err(Error::new(Code::FAILED_TO_PARSE, message));
            }
            [name] => *name,
            [first, second, ..] => {
                let message =
                    format!("Expected a single top-level field name, found '{first}' and '{second}' in arrayFilters");
                return Err(Error::new(Code::FAILED_TO_PARSE, message));
            }
        };
        let lowercase = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        if !lowercase || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let message = format!(
                "The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '{name}'"
            );
            return Err(Error::new(Code::BAD_VALUE, message));
        }
        let name = name.into();
        Ok((name, Self { condition: Condition::Field(root) }))
    }

    /// Whether the value satisfies the condition.
    pub fn matches(&self, value: Value<'_>) -> bool {
        match &self.condition {
            Condition::Equal(operand) => crate::order::equal(value, operand.as_value()),
            Condition::Document(node) => value.as_document().is_some_and(|document| node.matches(document)),
            Condition::Field(node) => node.matches_from(value),
        }
    }
}

/// Collects the distinct first names of the paths that the conditions ask about.
fn first_names<'n>(node: &'n Node, names: &mut Vec<&'n str>) {
    node.visit_paths(&mut |path: &'n Path| {
        let name = path.parts().first().map_or("", |part| part.name());
        if !names.contains(&name) {
            names.push(name);
        }
    });
}
