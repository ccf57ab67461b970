//! What clients may not do with the databases of the server itself: `admin` has its users, `config` the records of retryable writes.

use bson::{RawBsonRef, RawDocument};

use crate::{
    command::Command,
    failure::{Code, Failure, Result},
    stages,
};

/// Fails, with MongoDB's code, if the command would damage a database of the server. Clients may write and drop the records, as in MongoDB.
pub(crate) fn check(command: &Command) -> Result<()> {
    let database = command.database();
    let is_records = |name: Option<&str>| database == "config" && name == Some("transactions");
    match &*command.name {
        "dropDatabase" => match database {
            "admin" => Err(illegal("Dropping the 'admin' database is prohibited.")),
            "local" => Err(illegal("Cannot drop 'local' database while replication is active")),
            _ => Ok(()),
        },
        "createIndexes" if is_records(command.collection()) => {
            Err(illegal("not allowed to create index on config.transactions"))
        }
        "create" | "collMod" => {
            if is_records(command.collection()) && command.get("viewOn")?.is_some() {
                return Err(illegal("config.transactions must be a collection"));
            }
            check_validator(command)
        }
        "renameCollection" => {
            for name in ["renameCollection", "to"] {
                if command.get(name)?.and_then(RawBsonRef::as_str) == Some("config.transactions") {
                    return Err(illegal("config.transactions cannot be renamed or replaced"));
                }
            }
            Ok(())
        }
        "aggregate" => {
            let stages = command.get("pipeline")?.and_then(RawBsonRef::as_array);
            stages.map_or(Ok(()), |stages| stages::visit(stages, &mut |name, into| check_target(name, into, database)))
        }
        _ => Ok(()),
    }
}

fn illegal(message: &str) -> Failure {
    Failure::new(Code::ILLEGAL_OPERATION, message)
}

fn is_internal(database: &str) -> bool {
    matches!(database, "admin" | "config" | "local")
}

/// Refuses validators of collections in the server's databases. An empty validator is allowed.
fn check_validator(command: &Command) -> Result<()> {
    let validator = command.get("validator")?.and_then(RawBsonRef::as_document);
    if !is_internal(command.database()) || validator.is_none_or(RawDocument::is_empty) {
        return Ok(());
    }
    let message = format!(
        "Document validators are not allowed on collection {} in the {} internal database",
        command.namespace(),
        command.database()
    );
    Err(Failure::new(Code::INVALID_OPTIONS, message))
}

/// Refuses `$out` and `$merge` into the server's databases and collections.
fn check_target(stage: &str, argument: RawBsonRef<'_>, database: &str) -> Result<()> {
    let (into, special, internal) = match stage {
        "$out" => (Some(argument), 17385, 31321),
        "$merge" => {
            let options = argument.as_document();
            let into = options.map_or(Ok(Some(argument)), |options| options.get("into"))?;
            (into, 31319, 31320)
        }
        _ => return Ok(()),
    };
    let (database, collection) = match into {
        Some(RawBsonRef::String(collection)) => (database, collection),
        Some(RawBsonRef::Document(into)) => {
            let part = |name| into.get_str(name).ok();
            (part("db").unwrap_or(database), part("coll").unwrap_or_default())
        }
        _ => return Ok(()),
    };
    if collection.starts_with("system.") {
        return Err(Failure::located(special, format!("Cannot {stage} to special collection: {collection}")));
    }
    if is_internal(database) {
        return Err(Failure::located(internal, format!("Cannot {stage} to internal database: {database}")));
    }
    Ok(())
}
