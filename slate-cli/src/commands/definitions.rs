//! The definitions of collections in dumps: written by `export` and applied by `import`. A `copy` from or to a server reads and
//! applies them, too.

use std::collections::BTreeMap;

use bson::{Document, RawDocumentBuf, doc};
use slate_core::{Index, IndexState, ReadCollection};

use super::create_index;
use crate::{
    endpoint::Endpoint,
    failure::{Failure, Result},
    input::{Metadata, unversioned},
    session::Session,
};

/// The options of a collection that `import` sets after the documents are stored, because stored documents may violate them.
const VALIDATION: [&str; 3] = ["validator", "validationLevel", "validationAction"];

/// Returns the kind and the options of each collection, by name.
///
/// # Errors
/// Fails if the storage or the server fails.
pub(super) fn read(target: &Endpoint) -> Result<BTreeMap<String, Metadata>> {
    let listed = target.listed(&doc! { "listCollections": 1 })?.into_iter().filter_map(|collection| {
        let options = unversioned(collection.get_document("options").cloned().unwrap_or_default());
        let metadata = Metadata { kind: collection.get_str("type").ok()?.into(), options, indexes: Vec::new() };
        Some((collection.get_str("name").ok()?.to_owned(), metadata))
    });
    // Collections of the server itself.
    Ok(listed.filter(|(name, _)| !matches!(target, Endpoint::Server(_)) || !name.starts_with("system.")).collect())
}

/// Returns the name, if one is given and exists, or the names of all collections. Leaves out views, which have no documents of their
/// own.
///
/// # Errors
/// Fails if there is no collection of the name, or if the storage or the server fails.
pub(super) fn one_or_all(target: &Endpoint, name: Option<&String>) -> Result<Vec<String>> {
    if let Some(name) = name {
        target.check(name)?;
        return Ok(vec![name.clone()]);
    }
    Ok(read(target)?.into_iter().filter(|(_, metadata)| metadata.kind != "view").map(|(name, _)| name).collect())
}

/// Returns the definitions of a collection's indexes whose builds are complete.
///
/// # Errors
/// Fails if the storage fails.
pub(super) fn indexes(collection: &ReadCollection<RawDocumentBuf>) -> Result<Vec<Document>> {
    let ready = collection.list_indexes()?.into_iter().filter(|index| index.state == IndexState::Ready);
    Ok(ready.map(|index| Document::try_from(index.to_definition().as_ref()).unwrap_or_default()).collect())
}

/// Returns the definitions of a collection's indexes. `options` are those of the collection.
///
/// # Errors
/// Fails if the storage or the server fails.
pub(crate) fn indexes_of(target: &Endpoint, name: &str, options: &Document) -> Result<Vec<Document>> {
    match target {
        Endpoint::Embedded(database) => indexes(&database.snapshot()?.collection(name)),
        Endpoint::Server(_) => Ok(Metadata::indexes(&target.listed(&doc! { "listIndexes": name })?, options)),
    }
}

/// Creates a view, or a collection with a collation; any other collection is created with its first document. `ignored` is called
/// with a message for each option or kind that is not supported, and for a refusal.
///
/// # Errors
/// Fails if the storage or the server fails.
pub(super) fn create(target: &Endpoint, name: &str, metadata: &Metadata, mut ignored: impl FnMut(&str)) -> Result<()> {
    let command = creation(name, metadata, &mut ignored);
    let plain = command.len() == 1;
    if plain { Ok(()) } else { run(target, &command, &mut ignored) }
}

/// Returns the command that creates a view, or a collection with its collation. `ignored` is called with a message for each option
/// or kind that is not supported.
pub(super) fn creation(name: &str, metadata: &Metadata, mut ignored: impl FnMut(&str)) -> Document {
    let known: &[&str] = if metadata.kind == "view" { &["collation", "viewOn", "pipeline"] } else { &["collation"] };
    let mut command = doc! { "create": name };
    for (option, value) in &metadata.options {
        if known.contains(&option.as_str()) {
            command.insert(option, value.clone());
        } else if !VALIDATION.contains(&option.as_str()) {
            ignored(&format!("the collection's option {option} has no equivalent"));
        }
    }
    if !matches!(metadata.kind.as_str(), "collection" | "view") {
        ignored(&format!("this is a {}; it is restored as a collection", metadata.kind));
    }
    command
}

/// Creates the indexes of a definition, and sets its validator unless it is of a view. `ignored` is called with a message for each
/// that is refused.
///
/// # Errors
/// Fails if the storage or the server fails, or if it is interrupted.
pub(super) fn complete(
    target: &Endpoint,
    collection: &str,
    metadata: &Metadata,
    session: &Session,
    mut ignored: impl FnMut(&str),
) -> Result<()> {
    for definition in &metadata.indexes {
        if let Err(failure) = add_index(target, collection, definition, session) {
            if !failure.is_refusal() {
                return Err(failure);
            }
            let name = definition.get_str("name").unwrap_or("without a name");
            ignored(&format!("the index {name} is not created: {}", failure.line()));
        }
    }
    let validation = metadata.options.iter().filter(|(option, _)| VALIDATION.contains(&option.as_str()));
    let mut command = doc! { "collMod": collection };
    command.extend(validation.map(|(option, value)| (option.clone(), value.clone())));
    if metadata.kind == "view" || command.len() == 1 { Ok(()) } else { run(target, &command, &mut ignored) }
}

fn add_index(target: &Endpoint, collection: &str, definition: &Document, session: &Session) -> Result<()> {
    match target {
        Endpoint::Embedded(database) => {
            create_index::build(&database.collection(collection), Index::from_definition(definition)?, session)?;
        }
        Endpoint::Server(_) => {
            let definition = unversioned(definition.clone());
            target.write(&doc! { "createIndexes": collection, "indexes": [definition] })?;
        }
    }
    Ok(())
}

/// Returns the message for options of a collection that the database refuses.
pub(super) fn refused_options(failure: &Failure) -> String {
    format!("the collection's options are not set: {}", failure.line())
}

/// Runs a command. Reports a refusal by the database to `ignored`.
fn run(target: &Endpoint, command: &Document, ignored: &mut impl FnMut(&str)) -> Result<()> {
    match target.write(command) {
        Err(failure) if failure.is_refusal() => {
            ignored(&refused_options(&failure));
            Ok(())
        }
        done => done.map(drop),
    }
}
