//! The databases of the targets.

use std::cell::RefCell;

use bson::{Document, doc};
use slate_core::{Database, Index};

use super::language;

thread_local! {
    static DATABASE: RefCell<Option<Database>> = const { RefCell::new(None) };
}

/// Calls `work` with a database of documents with values of many types, in a collection with indexes and in one
/// without. It is shared by all inputs, so `work` must not change it.
pub(super) fn with_database<R>(work: impl FnOnce(&Database) -> R) -> R {
    let db = DATABASE.with_borrow_mut(|cached| cached.get_or_insert_with(filled).clone());
    work(&db)
}

pub(super) fn filled() -> Database {
    let db = right(Database::open("memory:"));
    let documents = language::documents();
    for name in ["plain", "indexed"] {
        right(db.collection(name).insert_many(&documents).run());
    }
    let indexed = db.collection::<Document>("indexed");
    for keys in [doc! { "a": 1 }, doc! { "b": -1, "a": 1 }, doc! { "a.b": 1 }, doc! { "$**": 1 }] {
        right(indexed.create_index(Index::on(keys)).run());
    }
    db
}

/// Returns the value of a result in the fixed part of a target. Panics on an error, which is a fault.
#[track_caller]
pub(super) fn right<T>(result: slate_core::Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => fault(&format!("a target cannot begin: {error:?}")),
    }
}

#[allow(clippy::panic, reason = "a fault ends the target")]
#[track_caller]
pub(super) fn fault(what: &str) -> ! {
    panic!("{what}")
}

/// Creates a temporary folder for the files of one input.
pub(super) fn folder() -> tempfile::TempDir {
    right(tempfile::tempdir().map_err(slate_core::Error::custom))
}
