use bson::{RawArray, RawBsonRef, RawDocument};

use super::{
    needs::{Needs, is_true, only},
    privilege::{
        Action::{self, *},
        Target,
    },
};
use crate::{failure::Result, stages};

/// Returns the actions that a pipeline needs on its collection: `find`, unless its first stage reads something else of it.
pub(super) fn first_actions(stages: Option<&RawArray>) -> Result<&'static [Action]> {
    let first = stages.map_or(Ok(None), stages::first)?;
    Ok(match first.map(|(name, _)| name) {
        Some("$changeStream") => &[ChangeStream, Find],
        Some("$collStats") => &[CollStats],
        Some("$indexStats") => &[IndexStats],
        Some("$planCacheStats") => &[PlanCacheRead],
        _ => &[Find],
    })
}

/// Whether a pipeline reads sessions, whatever its collection.
pub(super) fn lists_sessions(stages: Option<&RawArray>) -> Result<bool> {
    Ok(stages.map_or(Ok(None), stages::first)?.is_some_and(|(name, _)| name == "$listSessions"))
}

/// Adds the needs of a pipeline without a collection: `{aggregate: 1}`.
pub(super) fn without_collection(stages: Option<&RawArray>, database: &str, needs: &mut Needs) -> Result<()> {
    // Numbers count as true, as in the library.
    let is_about_all = |options: RawBsonRef<'_>, name: &str| {
        let mut fields = options.as_document().into_iter().flatten().flatten();
        fields.any(|(key, value)| key == name && is_true(value))
    };
    let Some((name, options)) = stages.map_or(Ok(None), stages::first)? else { return Ok(()) };
    match name {
        // Users always see their own operations.
        "$currentOp" if is_about_all(options, "allUsers") => needs.add(Target::Cluster, &[Inprog]),
        "$changeStream" if is_about_all(options, "allChangesForCluster") => {
            needs.add(Target::AnyNormal, &[ChangeStream, Find]);
        }
        "$changeStream" => needs.add(Target::Database(database.into()), &[ChangeStream, Find]),
        "$listLocalSessions" | "$listSessions" if is_about_all(options, "allUsers") => {
            needs.add(Target::Cluster, &[ListSessions])
        }
        "$currentOp" | "$documents" | "$listLocalSessions" | "$listSessions" => {}
        _ => needs.add(Target::Database(database.into()), &[Find]),
    }
    Ok(())
}

/// Adds the needs of the collections that stages name, including stages of nested pipelines.
///
/// # Errors
/// Fails as [`stages::visit`] does, and if an option that names a collection occurs twice.
pub(super) fn add_stages(stages: &RawArray, database: &str, needs: &mut Needs) -> Result<()> {
    stages::visit(stages, &mut |name, options| add_stage(name, options, database, needs))
}

fn add_stage(stage: &str, options: RawBsonRef<'_>, database: &str, needs: &mut Needs) -> Result<()> {
    let document = options.as_document();
    let (option, actions): (&str, &[Action]) = match stage {
        "$lookup" | "$graphLookup" => ("from", &[Find]),
        "$unionWith" => ("coll", &[Find]),
        "$out" => ("", &[Insert, Remove]),
        "$merge" => ("into", document.map_or(Ok(&[Insert, Update][..]), merge_actions)?),
        _ => return Ok(()),
    };
    match (options, document) {
        // `$lookup` has no such short form: the library refuses it.
        (RawBsonRef::String(name), _) => needs.collection(database, name, actions),
        (_, Some(into)) if stage == "$out" => add_namespace(into, database, needs, actions)?,
        (_, Some(options)) => add_named(options, option, database, needs, actions)?,
        _ => {}
    }
    Ok(())
}

/// Returns the actions that `$merge` needs on its target collection.
fn merge_actions(options: &RawDocument) -> Result<&'static [Action]> {
    let word = |name| -> Result<Option<&str>> { Ok(only(options, name)?.and_then(|value| value.as_str())) };
    let updates = !matches!(word("whenMatched")?, Some("fail" | "keepExisting"));
    let inserts = !matches!(word("whenNotMatched")?, Some("discard" | "fail"));
    Ok(match (inserts, updates) {
        (true, false) => &[Insert],
        (false, true) => &[Update],
        _ => &[Insert, Update],
    })
}

/// Adds the needs on the collection in the option `name`: a string, or `{db, coll}`. Nothing for another value, which the library refuses.
fn add_named(options: &RawDocument, name: &str, database: &str, needs: &mut Needs, actions: &[Action]) -> Result<()> {
    match only(options, name)? {
        Some(RawBsonRef::String(collection)) => needs.collection(database, collection, actions),
        Some(RawBsonRef::Document(namespace)) => add_namespace(namespace, database, needs, actions)?,
        _ => {}
    }
    Ok(())
}

fn add_namespace(namespace: &RawDocument, database: &str, needs: &mut Needs, actions: &[Action]) -> Result<()> {
    let text = |name| -> Result<Option<&str>> { Ok(only(namespace, name)?.and_then(|value| value.as_str())) };
    needs.collection(text("db")?.unwrap_or(database), text("coll")?.unwrap_or_default(), actions);
    Ok(())
}
