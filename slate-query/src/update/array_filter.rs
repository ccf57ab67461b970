//! Array filters: the elements that `$[name]` selects.

use std::collections::HashSet;

use crate::{
    Code, Error, Result,
    collation::Collation,
    filter::Filter,
    raw::{Doc, Value, Writer},
    work,
};

/// The elements of an array that `$[]` or `$[identifier]` selects. Ordered as MongoDB applies them: `$[]` first, then by identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Selector {
    /// All elements.
    All,
    /// The elements that match the filter at this position of [`ArrayFilters`].
    Matching(usize),
}

/// The array filters of an update, by identifier.
#[derive(Debug, Default)]
pub(super) struct ArrayFilters(Vec<ArrayFilter>);

#[derive(Debug)]
struct ArrayFilter {
    identifier: Box<str>,
    filter: Filter,
    /// Whether a path refers to the filter. Unused filters are an error.
    used: Use,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Yes,
    No,
}

impl ArrayFilters {
    /// Parses the filters. All paths of a filter begin with its identifier.
    ///
    /// # Errors
    /// `FailedToParse` (9) for a filter without an identifier or with several, and for repeated identifiers; `BadValue`
    /// (2) for an identifier that is not alphanumeric or does not begin with a lowercase letter; the errors of filters.
    pub(super) fn parse(documents: &[Doc<'_>], collation: Option<&Collation>) -> Result<Self> {
        let mut filters = Vec::<ArrayFilter>::new();
        let mut identifiers = HashSet::<Box<str>>::new();
        for &document in documents {
            let filter = Filter::parse_part(document, collation)?;
            let mut found = None;
            identify(document, &mut found)?;
            let identifier = found.ok_or_else(|| failed("an array filter needs a top-level field name"))?;
            if !is_identifier(&identifier) {
                let message = "an array filter's top-level field name is alphanumeric and begins with a small letter";
                return Err(Error::new(Code::BAD_VALUE, message).at(identifier));
            }
            if !identifiers.insert(identifier.clone()) {
                return Err(failed("several array filters have the same top-level field name").at(identifier));
            }
            filters.push(ArrayFilter { identifier, filter, used: Use::No });
        }
        filters.sort_by(|a, b| a.identifier.cmp(&b.identifier));
        Ok(Self(filters))
    }

    /// Returns the selector for the filter with that identifier, which is marked as used; fails with `BadValue` (2)
    /// if there is none.
    pub(super) fn selector(&mut self, identifier: &str) -> Result<Selector> {
        if let Ok(place) = self.0.binary_search_by(|filter| (*filter.identifier).cmp(identifier))
            && let Some(filter) = self.0.get_mut(place)
        {
            filter.used = Use::Yes;
            return Ok(Selector::Matching(place));
        }
        Err(Error::new(Code::BAD_VALUE, format!("no array filter found for identifier '{identifier}'")))
    }

    /// Fails if a filter is not used by any path.
    pub(super) fn all_used(&self) -> Result<()> {
        match self.0.iter().find(|filter| filter.used == Use::No) {
            None => Ok(()),
            Some(unused) => {
                let message =
                    format!("the array filter for identifier '{}' is not used in the update", unused.identifier);
                Err(failed(&message))
            }
        }
    }

    /// Returns whether the selector selects this element.
    ///
    /// # Errors
    /// As [`Filter::evaluate`].
    pub(super) fn selects(&self, selector: Selector, element: Value<'_>) -> Result<bool> {
        match selector {
            Selector::All => Ok(true),
            Selector::Matching(place) => {
                self.0.get(place).map_or(Ok(false), |ArrayFilter { identifier, filter, .. }| {
                    // The identifier is a field with the element as its value, so arrays are searched as in any filter.
                    work::take(1 + work::of_bytes(element.bytes().len()))?;
                    let mut wrapped = Writer::new();
                    wrapped.append(identifier.as_bytes(), element);
                    filter.evaluate(Doc::new(&wrapped.finish()))
                })
            }
        }
    }
}

/// Stores in `found` the top-level field name of a filter. Fails for a second name, and for an operator other than
/// `$and`, `$or`, `$nor` and `$comment`.
fn identify(filter: Doc<'_>, found: &mut Option<Box<str>>) -> Result<()> {
    for element in filter.elements() {
        let name = element.display_name();
        match &*name {
            "$and" | "$or" | "$nor" => {
                for branch in element.value.as_array().into_iter().flat_map(Doc::values) {
                    identify(branch.as_document().unwrap_or(Doc::new(&[])), found)?;
                }
            }
            "$comment" => {}
            operator if operator.starts_with('$') => {
                return Err(failed("an array filter cannot contain this top-level operator").at(operator));
            }
            path => {
                let top = path.split('.').next().unwrap_or_default();
                match found {
                    Some(other) if **other != *top => {
                        let message =
                            format!("an array filter has one top-level field name, not '{other}' and '{top}'");
                        return Err(failed(&message));
                    }
                    _ => *found = Some(top.into()),
                }
            }
        }
    }
    Ok(())
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn failed(message: &str) -> Error {
    Error::new(Code::FAILED_TO_PARSE, message)
}
