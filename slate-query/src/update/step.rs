//! The paths of updates, which may contain `$`, `$[]` and `$[name]`.

use super::{
    array_filter::{ArrayFilters, Selector},
    tree::SiblingName,
};
use crate::{Code, Error, Result, path::Path};

/// One step of an update's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathStep {
    /// A field name or an array position.
    Name(SiblingName),
    /// `$`: the array position where the filter matched.
    Positional,
    /// `$[]` or `$[name]`: selected elements of an array.
    Each(Selector),
}

/// Parses an update's path.
///
/// # Errors
/// `EmptyFieldName` (56); `BadValue` (2) for a dynamic step at the start, a second `$`, or an identifier without a
/// filter.
pub(super) fn parse(path: &Path, filters: &mut ArrayFilters) -> Result<Vec<PathStep>> {
    check(path)?;
    let steps = path.parts().iter().map(|part| step(part.name(), filters));
    steps.collect::<Result<_>>().map_err(|error| error.at(path.as_str()))
}

fn check(path: &Path) -> Result<()> {
    let names = || path.parts().iter().map(|part| part.name());
    let refuse = |code, message| Err(Error::new(code, message).at(path.as_str()));
    if names().any(str::is_empty) {
        return refuse(Code::EMPTY_FIELD_NAME, "an update's path must not contain an empty field name");
    }
    if names().filter(|&name| name == "$").count() > 1 {
        return refuse(Code::BAD_VALUE, "an update's path may contain the positional operator '$' only once");
    }
    if names().next().is_some_and(is_dynamic) {
        return refuse(Code::BAD_VALUE, "an update's path cannot begin with '$', '$[]' or '$[<identifier>]'");
    }
    Ok(())
}

fn step(name: &str, filters: &mut ArrayFilters) -> Result<PathStep> {
    Ok(match identifier(name) {
        _ if name == "$" => PathStep::Positional,
        None => PathStep::Name(SiblingName::new(name)),
        Some("") => PathStep::Each(Selector::All),
        Some(identifier) => PathStep::Each(filters.selector(identifier)?),
    })
}

/// Returns whether the name is `$`, `$[]` or `$[identifier]`: which elements it selects depends on the document.
pub(super) fn is_dynamic(name: &str) -> bool {
    name == "$" || identifier(name).is_some()
}

/// Returns the text between the brackets of `$[…]`; `None` for another name.
fn identifier(name: &str) -> Option<&str> {
    name.strip_prefix("$[")?.strip_suffix(']')
}
