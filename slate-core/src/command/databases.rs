//! Databases in commands: clients name a collection within the database `$db`, and the store has one name for each collection of all
//! databases (see [`namespace`]). The names in a command are replaced before it is parsed, so that the rest of Slate knows only stored
//! names.

use bson::{Bson, Document};
use slate_query::raw::{Kind, OwnedValue, Value};

use super::call::Call;
use crate::{Error, ErrorKind, Result, namespace, stage_names};

/// The commands whose value is not the name of a collection in the database of the command.
const WITHOUT_COLLECTION: [&str; 2] = ["killCursors", "renameCollection"];

/// The parts of a command that name collections, with stored names.
#[derive(Default)]
pub(super) struct StoredNames {
    target: Option<OwnedValue>,
    pipeline: Option<Vec<u8>>,
    view_on: Option<OwnedValue>,
}

impl StoredNames {
    /// Returns the stored names of a command that is sent to `database`; without a database none is replaced.
    ///
    /// # Errors
    /// Fails with `InvalidNamespace` (73) for an invalid database or a name with a `$`.
    pub(super) fn of(call: &Call<'_>, database: Option<&str>) -> Result<Self> {
        let Some(database) = database else { return Ok(Self::default()) };
        namespace::check_database(database)?;
        let text = |name: &str| -> Result<OwnedValue> {
            Ok(OwnedValue::from(Bson::String(stage_names::stored(database, name)?)))
        };
        let has_collection = !WITHOUT_COLLECTION.contains(&call.name);
        let target = call.target.as_str().filter(|_| has_collection).map(text).transpose()?;
        let view_on = call.fields.peek("viewOn").and_then(Value::as_str).filter(|on| !on.is_empty());
        let view_on = view_on.map(text).transpose()?;
        let pipeline = call.fields.peek("pipeline").and_then(Value::as_array);
        let pipeline = pipeline.map(|stages| stage_names::stored_array(database, stages)).transpose()?;
        Ok(Self { target, pipeline, view_on })
    }

    /// Replaces the names in the command by the stored names.
    pub(super) fn apply<'c>(&'c self, call: &mut Call<'c>) {
        if let Some(target) = &self.target {
            call.target = target.as_value();
        }
        if let Some(on) = &self.view_on {
            call.fields.replace("viewOn", on.as_value());
        }
        if let Some(pipeline) = &self.pipeline {
            call.fields.replace("pipeline", Value::new(Kind::Array, pipeline));
        }
    }
}

/// Replaces stored names in an error by the names that clients use: the full names of collections.
pub(super) fn shown_error(error: Error, database: Option<&str>) -> Error {
    let shown = shown_message(&error, error.message().to_owned(), database);
    error.with_message(shown)
}

/// Replaces stored names in a message about an error.
pub(super) fn shown_message(error: &Error, mut message: String, database: Option<&str>) -> String {
    if let Some(stored) = error.collection() {
        let (database, own) = namespace::split(stored);
        let full = format!("{database}.{own}");
        if stored.len() > own.len() {
            message = message.replace(stored, &full);
        } else if error.kind() == ErrorKind::DuplicateKey {
            message = message.replacen(&format!("collection: {own} index"), &format!("collection: {full} index"), 1);
        }
    }
    match database {
        Some(database) => message.replace(&format!("${database}."), &format!("{database}.")),
        None => message,
    }
}

/// Replaces stored names in a plan by names within the database.
pub(super) fn shown_plan(plan: &mut Document) {
    for (name, value) in plan.iter_mut() {
        match value {
            Bson::Document(node) => shown_plan(node),
            Bson::Array(nodes) => nodes.iter_mut().filter_map(Bson::as_document_mut).for_each(shown_plan),
            Bson::String(stored) if matches!(&**name, "$unionWith" | "coll" | "collection" | "from" | "into") => {
                *stored = namespace::split(stored).1.to_owned();
            }
            _ => {}
        }
    }
}
