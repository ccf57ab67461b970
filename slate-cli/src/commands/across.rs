//! Copies between a server and another database, document by document: the library's own copy works only between stores.

use bson::{Bson, doc, oid::ObjectId};
use slate_core::CancelToken;

use super::{
    definitions,
    source::CopySource,
    transfer::{self, UNFINISHED},
    unfinished,
};
use crate::{
    endpoint::{Endpoint, OnSignal},
    failure::{Failure, Result},
    input::Metadata,
    load::{Loader, Mode},
    message::message,
    output, progress,
    session::Session,
};

/// The result of a copy.
pub(super) struct Copied {
    /// A description of what was copied.
    pub(super) described: String,
    /// Number of indexes and options that were left out, which messages name.
    pub(super) left_out: u64,
}

/// MongoDB's code of `NamespaceExists`.
const NAMESPACE_EXISTS: i32 = 48;

/// A collection or a view that a copy has created.
pub(super) struct Made {
    pub(super) name: String,
    /// The name that it may have already: the rename was sent, and no reply was received.
    becomes: Option<String>,
    /// The UUID of the collection, which a rename does not change; `None` if the target has none.
    uuid: Option<Bson>,
    /// How many documents the copy has written into it.
    documents: u64,
}

/// Copies all collections with their indexes, and all views. `made` receives those that the copy has created.
///
/// A collection gets its name only when all are complete. Before that it has a temporary name that no other client uses, so that a
/// copy that fails drops no collection of another client.
///
/// # Errors
/// Fails before anything is copied if a collection exists in both. Fails if another client creates one of them during the copy, or
/// if the target refuses a document.
pub(super) fn copy(from: &CopySource, to: &Endpoint, session: &Session, made: &mut Vec<Made>) -> Result<Copied> {
    let (mut names, existing) = (from.names()?, to.names()?);
    names.retain(|name| !name.starts_with(UNFINISHED));
    let left: Vec<&str> = existing.iter().map(|name| &**name).filter(|name| name.starts_with(UNFINISHED)).collect();
    match to {
        // Only this process has the files open, so no other copy is running. On a cluster or a server one may be.
        Endpoint::Embedded(database) if database.store() != "tikv" => {
            left.iter().try_for_each(|name| to.drop_collection(name))?;
        }
        Endpoint::Embedded(_) | Endpoint::Server(_) => unfinished::report(&left),
    }
    if let Some(name) = names.iter().find(|name| existing.contains(name)) {
        return Err(Failure::new(format!("the target has a collection {name} already"))
            .hint("copy to a new database, or drop the collection first"));
    }
    let mut definitions = definitions::read(&from.endpoint())?;
    let (mut left_out, mut documents, mut views, mut complete) = (0, 0, Vec::new(), Vec::new());
    let unfinished = format!("{UNFINISHED}{}", ObjectId::new());
    for name in &names {
        let mut metadata = definitions.remove(name).unwrap_or_default();
        if metadata.kind == "view" {
            views.push((name, metadata));
            continue;
        }
        metadata.indexes = from.indexes(name, &metadata.options)?;
        let mut ignored = |why: &str| {
            left_out += 1;
            message!("{name}: {why}");
        };
        let temporary = format!("{unfinished}.{}", made.len());
        made.push(Made { name: temporary.clone(), becomes: None, uuid: None, documents: 0 });
        create(to, &temporary, &metadata, &mut ignored)?;
        let uuid = uuid(to, &temporary)?;
        made.last_mut().into_iter().for_each(|made| made.uuid.clone_from(&uuid));
        let copied = copy_documents(from, to, (name, &temporary), &session.cancel())?;
        made.last_mut().into_iter().for_each(|made| made.documents = copied);
        documents += copied;
        definitions::complete(to, &temporary, &metadata, session, &mut ignored)?;
        complete.push(name);
    }
    made.iter().try_for_each(|made| check_complete(to, made))?;
    for (made, name) in made.iter_mut().zip(complete) {
        made.becomes = Some(name.clone());
        to.rename(&made.name, name).map_err(|failure| match failure.number() {
            Some(NAMESPACE_EXISTS) => created_meanwhile(name),
            _ => failure,
        })?;
        made.name.clone_from(name);
        made.becomes = None;
    }
    // Views are created after the collections that they read.
    for (name, metadata) in &views {
        let mut ignored = |why: &str| {
            left_out += 1;
            message!("{name}: {why}");
        };
        // Looked up first, because the command succeeds for a view that exists with the same definition.
        if to.has(name)? {
            return Err(created_meanwhile(name));
        }
        if let Created::Yes = create(to, name, metadata, &mut ignored)? {
            made.push(Made { name: (*name).clone(), becomes: None, uuid: None, documents: 0 });
        }
    }
    to.flush()?;
    let number_of_views = views.len() as u64;
    Ok(Copied {
        described: transfer::summary(names.len() as u64 - number_of_views, number_of_views, documents),
        left_out,
    })
}

/// Fails if a temporary collection was dropped during the copy: a later insert creates it again, with a part of the documents.
fn check_complete(to: &Endpoint, made: &Made) -> Result<()> {
    if uuid(to, &made.name)? == made.uuid && to.estimated_count(&made.name)? >= made.documents {
        return Ok(());
    }
    Err(Failure::new(format!("the collection {} was dropped by another client during the copy", made.name)))
}

fn created_meanwhile(name: &str) -> Failure {
    Failure::new(format!("the collection {name} was created by another client during the copy"))
}

/// Returns the UUID of a collection on a server; `None` for an embedded database, and if the server reports none.
fn uuid(to: &Endpoint, name: &str) -> Result<Option<Bson>> {
    if let Endpoint::Embedded(_) = to {
        return Ok(None);
    }
    let listed = to.listed(&doc! { "listCollections": 1, "filter": { "name": name } })?;
    Ok(listed.first().and_then(|collection| collection.get_document("info").ok()?.get("uuid").cloned()))
}

/// Whether a collection or a view was created.
enum Created {
    Yes,
    /// The target refuses the view.
    No,
}

/// Creates a collection or a view. If the target refuses a collection's options, creates it without them. A signal does not
/// interrupt this, because undoing the copy needs to know what was created.
///
/// # Errors
/// Fails if the storage or the server fails.
fn create(to: &Endpoint, name: &str, metadata: &Metadata, mut ignored: impl FnMut(&str)) -> Result<Created> {
    let command = definitions::creation(name, metadata, &mut ignored);
    match to.write_to_end(&command) {
        Ok(_) => return Ok(Created::Yes),
        Err(failure) if failure.number() == Some(NAMESPACE_EXISTS) || !failure.is_refusal() || command.len() == 1 => {
            return Err(failure);
        }
        Err(failure) => ignored(&definitions::refused_options(&failure)),
    }
    if metadata.kind == "view" {
        return Ok(Created::No);
    }
    to.write_to_end(&doc! { "create": name }).map(|_| Created::Yes)
}

/// Copies the documents of a collection into one of another name, and draws the progress. Returns their number.
fn copy_documents(from: &CopySource, to: &Endpoint, (name, target): (&str, &str), cancel: &CancelToken) -> Result<u64> {
    let bar = progress::documents(Some(from.endpoint().estimated_count(name)?), name);
    let (mut rows, mut loader) = (from.documents(name)?, Loader::new(to, target, Mode::Insert, OnSignal::Finish));
    let mut refused = None;
    let mut report = |id: &Bson, failure: &Failure| {
        refused.get_or_insert_with(|| {
            let id = output::relaxed(id.clone());
            format!("{name}: the document with the _id {id} is refused: {}", failure.line())
        });
    };
    let copied = loop {
        if cancel.is_cancelled() {
            break Err(Failure::interrupted());
        }
        let next = rows.next(|document| {
            let id = document.get("_id").ok().flatten().and_then(|id| Bson::try_from(id).ok()).unwrap_or(Bson::Null);
            loader.add(id, document.to_owned(), |id, _, failure| report(id, failure))
        });
        match next {
            Ok(Some(())) => bar.inc(1),
            Ok(None) => break loader.write(|id, _, failure| report(id, failure)),
            Err(failure) => break Err(failure),
        }
    };
    bar.finish_and_clear();
    copied?;
    match refused {
        Some(refused) => Err(Failure::new(refused)),
        None => Ok(loader.tally.inserted),
    }
}

/// Drops what a failed or interrupted copy has created. Ignores failures, because that of the copy is reported.
pub(super) fn undo(to: &Endpoint, made: &[Made]) {
    let names = made.iter().rev().flat_map(|made| {
        // Without the UUID the name may be that of another client's collection.
        let becomes = made.becomes.as_ref().filter(|_| made.uuid.is_some());
        [Some(&made.name), becomes].into_iter().flatten().map(move |name| (made, name))
    });
    for (made, name) in names {
        let dropped = match to {
            Endpoint::Embedded(_) => to.drop_collection(name),
            Endpoint::Server(_) => {
                let mut command = doc! { "drop": name };
                if let Some(uuid) = &made.uuid {
                    // Another client can have dropped the collection, and created one of its name.
                    command.insert("collectionUUID", uuid.clone());
                }
                to.write_to_end(&command).map(drop)
            }
        };
        // Stops if the target cannot be reached, so that the command waits for it only once.
        if dropped.is_err_and(|failure| !failure.is_refusal() && !failure.is_unsatisfied()) {
            return;
        }
    }
}
