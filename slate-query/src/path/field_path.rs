use crate::{
    Code, Error, Result,
    path::{MAX_NAMES, Path},
    work,
};

/// Names that may begin with `$`: the fields of a DBRef, and those of MongoDB's metadata.
const DOLLAR_NAMES: &[&str] = &["$db", "$id", "$recordId", "$ref", "$searchScore", "$searchSortValues", "$sortKey"];

/// Parses a field path of a pipeline stage.
///
/// # Errors
/// The errors of [`names`]; 16411 for a NUL byte.
pub(crate) fn parse(path: &str) -> Result<Path> {
    if path.contains('\0') {
        return Err(Error::new(Code(16_411), "a field path must not contain a NUL byte"));
    }
    names(path)?;
    Path::parse(path)
}

/// Splits a field path of a projection or of a pipeline. Unlike in a filter, no name may be empty or begin with `$`.
///
/// # Errors
/// 40352, 40353, 15998 for empty names; 16410 for `$`; `Overflow` (15) for a path of more than 200 names.
pub(crate) fn names(path: &str) -> Result<Vec<&str>> {
    if path.is_empty() {
        return Err(Error::new(Code(40352), "a field path may not be empty"));
    }
    if path.ends_with('.') {
        return Err(Error::new(Code(40353), "a field path may not end with a dot").at(path));
    }
    work::take(work::PARSED)?;
    let names: Vec<&str> = path.split('.').collect();
    if names.len() > MAX_NAMES {
        return Err(Error::new(Code::OVERFLOW, "a field path is too long"));
    }
    names.iter().try_for_each(|name| check(name)).map_err(|error| error.at(path))?;
    Ok(names)
}

fn check(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::new(Code(15998), "a field path's names may not be empty"));
    }
    if name.starts_with('$') && DOLLAR_NAMES.binary_search(&name).is_err() {
        return Err(Error::new(Code(16410), "a field path's names may not begin with '$'"));
    }
    Ok(())
}
