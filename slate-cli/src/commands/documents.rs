//! Arguments that are documents.

use bson::{Bson, Document, doc};
use slate_core::{IntoUpdate, UpdateModifications};

use crate::{
    json::{self, Dialect},
    message::abridged,
};

/// Reads a filter, an update, a sort, or another document of the query language.
pub(super) fn query(text: &str) -> Result<Document, String> {
    match json::argument(text, Dialect::QUERY)? {
        Bson::Document(document) => Ok(document),
        _ => Err("expected a document such as { name: \"Ada\" }".into()),
    }
}

/// Reads a collation: a document, or its locale alone.
pub(super) fn collation(text: &str) -> Result<Document, String> {
    if text.trim_start().starts_with('{') { query(text) } else { Ok(doc! { "locale": text }) }
}

/// Documents to store: one, or an array of them.
#[derive(Clone, Debug)]
pub(super) struct Documents(pub(super) Vec<Document>);

/// Reads documents to store.
pub(super) fn data(text: &str) -> Result<Documents, String> {
    documents(text, Dialect::DATA)
}

/// Reads the stages of a pipeline: an array, or one stage.
pub(super) fn pipeline(text: &str) -> Result<Documents, String> {
    documents(text, Dialect::QUERY)
}

/// Reads an update or a replacement: a document, or the array of a pipeline's stages.
pub(super) fn update(text: &str) -> Result<UpdateModifications, String> {
    let update = match json::argument(text, Dialect::QUERY)? {
        Bson::Document(document) => document.into_update(),
        _ => pipeline(text)?.0.into_update(),
    };
    update.map_err(|error| error.to_string())
}

/// Returns whether the stages of a pipeline write their result into a collection.
pub(super) fn write<'s>(stages: impl Iterator<Item = &'s Document>) -> bool {
    stages.last().is_some_and(|stage| stage.contains_key("$out") || stage.contains_key("$merge"))
}

fn documents(text: &str, dialect: Dialect) -> Result<Documents, String> {
    let one = |value| match value {
        Bson::Document(document) => Ok(document),
        other => Err(format!("expected a document, found {}", abridged(&other.to_string(), 60))),
    };
    match json::argument(text, dialect)? {
        Bson::Array(values) => values.into_iter().map(one).collect::<Result<_, _>>().map(Documents),
        value => one(value).map(|document| Documents(vec![document])),
    }
}
