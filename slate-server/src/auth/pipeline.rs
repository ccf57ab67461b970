use bson::{RawArray, RawBsonRef, RawDocument};

use super::{
    needs::{Needs, is_true, only},
    privilege::{
        Action::{self, *},
        Target,
    },
};
use crate::{
    failure::{Code, Failure, Result},
    stages,
};

/// Maximum nesting of pipelines: more than a document of 180 levels can contain, which is the deepest that is executed.
const MAX_DEPTH: usize = 60;

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
/// Fails with `Overflow` (15) if the pipelines are nested too deeply: the depth of the command was not checked before.
pub(super) fn add_stages(stages: &RawArray, database: &str, needs: &mut Needs) -> Result<()> {
    if needs.depth == MAX_DEPTH {
        return Err(Failure::new(Code(15, "Overflow"), format!("pipelines may nest at most {MAX_DEPTH} deep")));
    }
    needs.depth += 1;
    for stage in stages {
        let Some(stage) = stage?.as_document() else { continue };
        for element in stage {
            let (name, options) = element?;
            add_stage(name.as_str(), options, database, needs)?;
        }
    }
    needs.depth -= 1;
    Ok(())
}

fn add_stage(stage: &str, options: RawBsonRef<'_>, database: &str, needs: &mut Needs) -> Result<()> {
    let document = options.as_document();
    match (stage, options) {
        ("$lookup" | "$graphLookup", _) => {
            let Some(options) = document else { return Ok(()) };
            add_named(options, &["from"], database, needs, &[Find])?;
            add_inner(options, database, needs)
        }
        ("$unionWith", RawBsonRef::String(name)) => {
            needs.collection(database, name, &[Find]);
            Ok(())
        }
        ("$unionWith", _) => {
            let Some(options) = document else { return Ok(()) };
            add_named(options, &["coll"], database, needs, &[Find])?;
            add_inner(options, database, needs)
        }
        ("$facet", _) => {
            for facet in document.into_iter().flatten() {
                if let RawBsonRef::Array(stages) = facet?.1 {
                    add_stages(stages, database, needs)?;
                }
            }
            Ok(())
        }
        ("$out", RawBsonRef::String(name)) => {
            needs.collection(database, name, &[Insert, Remove]);
            Ok(())
        }
        ("$out", _) => document.map_or(Ok(()), |into| add_namespace(into, database, needs, &[Insert, Remove])),
        ("$merge", RawBsonRef::String(name)) => {
            needs.collection(database, name, &[Insert, Update]);
            Ok(())
        }
        ("$merge", _) => {
            let Some(options) = document else { return Ok(()) };
            add_named(options, &["into"], database, needs, merge_actions(options)?)?;
            match only(options, "whenMatched")? {
                Some(RawBsonRef::Array(stages)) => add_stages(stages, database, needs),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
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

/// Adds the needs on the collection in `options`: a string, or `{db, coll}`.
fn add_named(
    options: &RawDocument,
    names: &[&str],
    database: &str,
    needs: &mut Needs,
    actions: &[Action],
) -> Result<()> {
    for name in names {
        match only(options, name)? {
            Some(RawBsonRef::String(collection)) => needs.collection(database, collection, actions),
            Some(RawBsonRef::Document(namespace)) => add_namespace(namespace, database, needs, actions)?,
            _ => {}
        }
    }
    Ok(())
}

fn add_namespace(namespace: &RawDocument, database: &str, needs: &mut Needs, actions: &[Action]) -> Result<()> {
    let text = |name| -> Result<Option<&str>> { Ok(only(namespace, name)?.and_then(|value| value.as_str())) };
    needs.collection(text("db")?.unwrap_or(database), text("coll")?.unwrap_or_default(), actions);
    Ok(())
}

fn add_inner(options: &RawDocument, database: &str, needs: &mut Needs) -> Result<()> {
    match only(options, "pipeline")? {
        Some(RawBsonRef::Array(stages)) => add_stages(stages, database, needs),
        _ => Ok(()),
    }
}
