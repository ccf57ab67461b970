//! The values of a document for `distinct`.

use crate::{
    Code, Error, Result,
    path::{Part, Path},
    raw::{Doc, Kind, Value},
};

/// Parses the key of a `distinct`.
///
/// # Errors
/// 31032 if it contains a NUL byte; otherwise as [`Path::parse`].
pub fn parse(key: &str) -> Result<Path> {
    if key.contains('\0') {
        return Err(Error::new(Code(31032), "the key of a distinct holds no NUL byte").at(key.replace('\0', "\\0")));
    }
    Path::parse(key)
}

/// Calls `visit` with every value of `doc` that `distinct` on `path` returns, possibly repeatedly.
///
/// This walk differs from that of filters: after an array, a name of digits is always a position and never a field
/// name. An array at the end contributes its elements, a missing field nothing.
pub fn values<'a>(path: &Path, doc: Doc<'a>, visit: &mut impl FnMut(Value<'a>)) {
    walk(path.parts(), doc, visit);
}

fn walk<'a>(parts: &[Part], doc: Doc<'a>, visit: &mut impl FnMut(Value<'a>)) {
    let Some((part, rest)) = parts.split_first() else { return };
    let Some(value) = part.find(doc) else { return };
    let container = value.as_container();
    match (rest, container) {
        ([], Some(array)) if value.kind() == Kind::Array => array.values().for_each(visit),
        ([], _) => visit(value),
        ([next, ..], Some(array)) if value.kind() == Kind::Array && !is_position(next) => {
            array.values().filter_map(Value::as_document).for_each(|document| walk(rest, document, visit));
        }
        ([_, ..], Some(container)) => walk(rest, container, visit),
        ([_, ..], None) => {}
    }
}

/// Returns whether a name consists of digits, so that it can be a position in an array. One with a leading zero counts,
/// although no array has such a position.
fn is_position(part: &Part) -> bool {
    !part.name().is_empty() && part.name().bytes().all(|byte| byte.is_ascii_digit())
}
