//! Copies between a server and another database, document by document: the library's own copy reads and writes stores.

use bson::Bson;
use slate_core::CancelToken;

use super::{definitions, source::Source, transfer};
use crate::{
    endpoint::Endpoint,
    failure::{Failure, Result},
    input::Metadata,
    load::{Loader, Mode},
    message::message,
    output, progress,
    session::Session,
};

/// The result of a copy.
pub(super) struct Copied {
    /// What was copied, for people.
    pub(super) described: String,
    /// Number of indexes and options that were left out, which messages name.
    pub(super) left_out: u64,
}

/// Copies all collections with their indexes, and all views. `made` receives the names of those that the copy has begun.
///
/// # Errors
/// Fails before anything is written if a collection exists in both. Fails if the target refuses a document.
pub(super) fn copy(from: &Source, to: &Endpoint, session: &Session, made: &mut Vec<String>) -> Result<Copied> {
    let (names, existing) = (from.names()?, to.names()?);
    if let Some(name) = names.iter().find(|name| existing.contains(name)) {
        return Err(Failure::new(format!("the target has a collection {name} already"))
            .hint("copy to a new database, or drop the collection first"));
    }
    let mut definitions = definitions::read(&from.endpoint())?;
    let (mut left_out, mut documents, mut views) = (0, 0, Vec::new());
    for name in &names {
        let mut metadata = definitions.remove(name).unwrap_or_default();
        if metadata.kind == "view" {
            views.push((name, metadata));
            continue;
        }
        metadata.indexes = from.indexes(name, &metadata.options)?;
        made.push(name.clone());
        let mut ignored = |why: &str| {
            left_out += 1;
            message!("{name}: {why}");
        };
        definitions::create(to, name, &metadata, &mut ignored)?;
        documents += copy_documents(from, to, name, &session.cancel())?;
        if !to.has(name)? {
            to.run(&bson::doc! { "create": name })?;
        }
        definitions::complete(to, name, &metadata, session, &mut ignored)?;
        to.flush()?;
    }
    // After the collections that they read.
    for (name, metadata) in &views {
        made.push((*name).clone());
        left_out += create_view(to, name, metadata)?;
    }
    let number_of_views = views.len() as u64;
    Ok(Copied {
        described: transfer::summary(names.len() as u64 - number_of_views, number_of_views, documents),
        left_out,
    })
}

/// Creates a view. Returns the number of parts that were left out.
fn create_view(to: &Endpoint, name: &str, metadata: &Metadata) -> Result<u64> {
    let mut left_out = 0;
    definitions::create(to, name, metadata, |why| {
        left_out += 1;
        message!("{name}: {why}");
    })?;
    Ok(left_out)
}

/// Copies the documents of a collection, and draws the progress. Returns their number.
fn copy_documents(from: &Source, to: &Endpoint, name: &str, cancel: &CancelToken) -> Result<u64> {
    let bar = progress::documents(Some(from.endpoint().estimated_count(name)?), name);
    let (mut rows, mut loader) = (from.documents(name)?, Loader::new(to, name, Mode::Insert));
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

/// Drops what a copy that failed has made on a server. The failure of the copy is the one to report.
pub(super) fn undo(to: &Endpoint, made: &[String]) {
    for name in made.iter().rev() {
        let _ = to.drop_collection(name);
    }
}
