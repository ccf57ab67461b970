//! Which results the entries of an index contain. The rules `cover` and `distinct_keys` use it.
//!
//! An entry contains the exact value of the document in a field only if the index has no collation and has never contained a
//! truncated value, or an array on the path of this field.

use bson::RawDocumentBuf;
use slate_query::{
    path::Path,
    raw::{Kind, Value, Writer},
};

use super::{Checks, CoveredField, IndexBounds, Values};
use crate::catalog::IndexInfo;

/// Returns the included fields if the entries of an index within the bounds contain them all, one entry for each document.
pub(super) fn covered_fields(index: &IndexInfo, bounds: &IndexBounds, included: &[Path]) -> Option<Vec<CoveredField>> {
    // Entries of a wildcard index do not contain the order of fields.
    let has_one_field = || included.iter().filter(|path| path.as_str() != "_id").count() < 2;
    let is_held = index.collation.is_none() && !index.truncated && bounds.find_once(index);
    if !is_held || (index.is_part() && !has_one_field()) {
        return None;
    }
    let covered = |included: &Path| {
        if included.as_str() == "_id" {
            return Some(CoveredField::Id);
        }
        let field = index.pattern.fields().iter().position(|(path, _)| path == included)?;
        // A longer path projects a field inside a document, which an entry does not contain.
        (included.parts().len() == 1 && index.holds_values_at(field)).then_some(CoveredField::Indexed(field))
    };
    included.iter().map(covered).collect()
}

/// Returns the fields as a projection, for explain.
pub(super) fn drawn(fields: &[Path]) -> RawDocumentBuf {
    let mut document = Writer::new();
    fields
        .iter()
        .for_each(|field| document.append(field.as_str().as_bytes(), Value::new(Kind::Int32, &1_i32.to_le_bytes())));
    RawDocumentBuf::from_bytes(document.finish()).unwrap_or_default()
}

/// Returns whether the entries of an index within the bounds contain the distinct values at `path`.
///
/// The field must be the last of the index, and the fields before it must be bound to one value each. The entries of a
/// value then come in the order of `_id`, and the first of them represents the value.
pub(super) fn lists_values(
    index: &IndexInfo,
    bounds: &IndexBounds,
    checks: &Checks,
    path: &Path,
    values: &Values,
) -> bool {
    values.collation.is_none() && groups_by(index, bounds, checks, path)
}

/// Returns the position of the field at `path` if the entries of an index within the bounds contain all its values in the
/// records that they belong to.
///
/// An array has an entry for each element. All are within the bounds if these limit only fields without arrays. If another
/// field led through the array as well, equal elements of different types would not come in the order of the array.
pub(super) fn field_of_values(index: &IndexInfo, bounds: &IndexBounds, path: &Path) -> Option<usize> {
    let field = index.pattern.fields().iter().position(|(held, _)| held == path)?;
    let is_decoded = index.collation.is_none() && !index.truncated && !index.is_part() && !bounds.are_of_keys();
    let has_all_elements = || {
        let others_are_single = (0..index.pattern.fields().len()).all(|at| at == field || !index.is_multikey_at(at));
        bounds.used() <= field && others_are_single && !path.has_position()
    };
    (is_decoded && (!index.is_multikey_at(field) || has_all_elements())).then_some(field)
}

/// Returns whether the entries of an index within the bounds are ordered by the values at `path`, then by `_id`. False with `checks`.
pub(super) fn groups_by(index: &IndexInfo, bounds: &IndexBounds, checks: &Checks, path: &Path) -> bool {
    let Some(((last, _), before)) = index.pattern.fields().split_last() else { return false };
    last == path
        && index.holds_values_at(before.len())
        && checks.is_empty()
        && (0..before.len()).all(|field| bounds.is_point(field))
}
