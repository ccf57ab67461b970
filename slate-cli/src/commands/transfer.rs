//! Copies a database to another store, over the public API.

use bson::{RawDocumentBuf, doc};
use slate_core::{CancelToken, Database, Index};

use crate::{
    failure::{Failure, Result},
    load::{Loader, Mode},
    output, progress,
};

/// Copies all collections of one commit, with their indexes, into a database that has none of them. Indexes are created
/// after the documents. Returns what was copied, for people.
///
/// # Errors
/// Fails before anything is written if a collection exists in both; as reading and writing do.
pub(super) fn copy(from: &Database, to: &Database, cancel: &CancelToken) -> Result<String> {
    let snapshot = from.snapshot()?;
    let names = snapshot.list_collection_names();
    let existing = to.list_collection_names()?;
    if let Some(name) = names.iter().find(|name| existing.contains(name)) {
        return Err(Failure::new(format!("the target has a collection {name:?} already"))
            .hint("copy to a new database, or drop the collection first"));
    }
    let (mut collections, mut documents) = (0, 0);
    for name in &names {
        let (source, target) = (snapshot.collection::<RawDocumentBuf>(name), to.collection::<RawDocumentBuf>(name));
        target.create()?;
        let bar = progress::documents(Some(source.estimated_document_count()?), name);
        let mut loader = Loader::new(target.clone(), Mode::Insert);
        let mut refused = None;
        let mut cursor = source.find(doc! {}).cancel(cancel.clone()).cursor()?;
        while cursor.advance()? {
            if let Some(document) = cursor.current() {
                loader.add((), document.to_owned(), |(), _, error| refused = Some(error.to_string()))?;
                bar.inc(1);
            }
        }
        loader.write(|(), _, error| refused = Some(error.to_string()))?;
        bar.finish_and_clear();
        if let Some(why) = refused {
            return Err(Failure::new(format!("a document of {name} cannot be stored in the target: {why}")));
        }
        collections += 1;
        documents += loader.tally.inserted;
        for index in source.list_indexes()? {
            target.create_index(Index::from(&index)).cancel(cancel.clone()).run()?;
        }
    }
    let collections = output::counted(collections, "collection", "collections");
    Ok(format!("{collections} with {}", output::documents(documents)))
}
