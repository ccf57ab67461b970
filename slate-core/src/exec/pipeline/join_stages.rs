//! The stages that find the documents of another collection that a `$lookup` joins.

use slate_query::{
    filter::Filter,
    pattern::Direction,
    pipeline::{Join, Lookup, Stage},
    raw::{Doc, Kind, SmallBytes, Value},
};

use super::join_table::encode;
use crate::{Result, plan};

/// The encoded key of a value that documents are joined by, and the value.
pub(super) type JoinValue<V> = (SmallBytes, V);

/// Returns the stages that find the matches of one document.
pub(super) fn of_document(lookup: &Lookup, document: Doc<'_>) -> Result<Vec<Stage>> {
    let mut stages = if lookup.has_pipeline() { lookup.stages(document)? } else { Vec::new() };
    if let Some(join) = lookup.join() {
        let (mut values, mut key): (Vec<JoinValue<Value<'_>>>, _) = (Vec::new(), Vec::new());
        join.visit_local(document, &mut |value| {
            encode(value, &mut key);
            values.push((key.as_slice().into(), value));
        });
        // A stage with its own documents must stay first.
        let place = usize::from(stages.first().is_some_and(Stage::is_source));
        stages.splice(place..place, of_values(lookup, join, &mut values, |value| *value)?);
    }
    Ok(stages)
}

/// Returns the stages that find the documents that are equal to any of the values, in the order of `_id`. Sorts the values and removes
/// repeated ones.
pub(super) fn of_values<V>(
    lookup: &Lookup,
    join: &Join,
    values: &mut Vec<JoinValue<V>>,
    value: impl for<'a> Fn(&'a V) -> Value<'a> + Clone,
) -> Result<Vec<Stage>> {
    values.sort_by(|(a, _), (b, _)| a.as_slice().cmp(b.as_slice()));
    values.dedup_by(|(a, _), (b, _)| a.as_slice() == b.as_slice());
    let filter = equality(lookup, join, values.iter().map(|(_, of)| value(of)))?;
    Ok(filter.map(Stage::Match).into_iter().chain([by_id()?]).collect())
}

/// Returns the stage that orders documents by `_id`.
pub(super) fn by_id() -> Result<Stage> {
    Ok(Stage::Sort(plan::sort_by_id(Direction::Ascending)?))
}

/// Returns a typical condition, to find out whether an index serves it: equality with a number or a string, because some
/// indexes have no entries for missing values.
pub(super) fn usual(lookup: &Lookup, join: &Join) -> Result<Option<Filter>> {
    let values = [Value::new(Kind::Int32, &[0; 4]), Value::new(Kind::String, &[1, 0, 0, 0, 0])];
    equality(lookup, join, values.into_iter())
}

/// Returns the condition that the foreign field is equal to one of the values.
fn equality<'v>(
    lookup: &Lookup,
    join: &Join,
    values: impl Iterator<Item = Value<'v>> + Clone,
) -> Result<Option<Filter>> {
    let filter = join.filter(values);
    let filter = filter.as_value().as_document();
    Ok(filter.map(|filter| Filter::parse_with(filter, lookup.bindings())).transpose()?)
}
