//! The definitions of collections in dumps: written by `export`, applied by `import`.

use std::collections::BTreeMap;

use bson::{Document, RawDocumentBuf, doc, rawdoc};
use slate_core::{Collection, Database, ErrorKind, Index, IndexState, ReadCollection};

use super::create_index;
use crate::{
    failure::{Result, shown},
    input::Metadata,
    session::Session,
};

/// The options of a collection that `import` applies when the documents are stored, which need not fulfil them.
const VALIDATION: [&str; 3] = ["validator", "validationLevel", "validationAction"];

/// Returns the kind and the options of each collection, by name.
///
/// # Errors
/// Fails if the storage fails.
pub(super) fn read(database: &Database) -> Result<BTreeMap<String, Metadata>> {
    let reply = database.command(&rawdoc! { "listCollections": 1 })?;
    let reply = Document::try_from(reply.as_ref()).unwrap_or_default();
    let listed = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    let listed = listed.into_iter().flatten().filter_map(bson::Bson::as_document).filter_map(|collection| {
        let options = collection.get_document("options").cloned().unwrap_or_default();
        let metadata = Metadata { kind: collection.get_str("type").ok()?.into(), options, indexes: Vec::new() };
        Some((collection.get_str("name").ok()?.to_owned(), metadata))
    });
    Ok(listed.collect())
}

/// Returns the definitions of a collection's indexes that are complete.
///
/// # Errors
/// Fails if the storage fails.
pub(super) fn indexes(collection: &ReadCollection<RawDocumentBuf>) -> Result<Vec<Document>> {
    let ready = collection.list_indexes()?.into_iter().filter(|index| index.state == IndexState::Ready);
    Ok(ready.map(|index| Document::try_from(index.to_definition().as_ref()).unwrap_or_default()).collect())
}

/// Creates a collection or a view with the options of a definition, as far as they must be known before there are documents.
/// `ignored` is called with each option that has no equivalent.
///
/// # Errors
/// Fails if the storage fails.
pub(super) fn create(
    database: &Database,
    name: &str,
    metadata: &Metadata,
    mut ignored: impl FnMut(&str),
) -> Result<()> {
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
    let plain = command.len() == 1;
    if plain { Ok(()) } else { run(database, &command, &mut ignored) }
}

/// Creates the indexes of a definition, and sets the validator that the definition contains.
///
/// # Errors
/// Fails if the storage fails, or if it is interrupted.
pub(super) fn complete(
    database: &Database,
    collection: &Collection<RawDocumentBuf>,
    metadata: &Metadata,
    session: &Session,
    mut ignored: impl FnMut(&str),
) -> Result<()> {
    for definition in &metadata.indexes {
        let built =
            Index::from_definition(definition).and_then(|index| create_index::build(collection, index, session));
        if let Err(error) = built {
            if is_of_storage(&error) {
                return Err(error.into());
            }
            let name = definition.get_str("name").unwrap_or("without a name");
            ignored(&format!("the index {name} is not created: {}", shown(&error)));
        }
    }
    let validation = metadata.options.iter().filter(|(option, _)| VALIDATION.contains(&option.as_str()));
    let mut command = doc! { "collMod": collection.name() };
    command.extend(validation.map(|(option, value)| (option.clone(), value.clone())));
    if metadata.kind == "view" || command.len() == 1 { Ok(()) } else { run(database, &command, &mut ignored) }
}

/// Runs a command. Reports a refusal by the database to `ignored`.
fn run(database: &Database, command: &Document, ignored: &mut impl FnMut(&str)) -> Result<()> {
    let raw = RawDocumentBuf::try_from(command).map_err(|error| crate::failure::Failure::new(error.to_string()))?;
    match database.command(&raw) {
        Ok(_) => Ok(()),
        Err(error) if is_of_storage(&error) => Err(error.into()),
        Err(error) => {
            ignored(&format!("the collection's options are not set: {}", shown(&error)));
            Ok(())
        }
    }
}

fn is_of_storage(error: &slate_core::Error) -> bool {
    matches!(error.kind(), ErrorKind::Io | ErrorKind::Full | ErrorKind::Corrupt | ErrorKind::Interrupted)
}
