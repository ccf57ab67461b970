//! The public types: the database, its collections, builders, cursors, options and results. `aio` wraps them for async code.

pub(crate) mod aggregate;
pub(crate) mod bulk_write;
pub(crate) mod collection;
pub(crate) mod collection_description;
pub(crate) mod config;
pub(crate) mod cursor;
pub(crate) mod database;
pub(crate) mod delete;
pub(crate) mod document;
pub(crate) mod explain;
pub(crate) mod find;
pub(crate) mod find_one;
pub(crate) mod find_one_and;
pub(crate) mod index;
pub(crate) mod index_build;
pub(crate) mod insert_many;
pub(crate) mod modifications;
pub(crate) mod options;
pub(crate) mod setters;
pub(crate) mod snapshot;
pub(crate) mod transaction;
pub(crate) mod transaction_options;
pub(crate) mod update;
pub(crate) mod upsert_many;
pub(crate) mod verify;
pub(crate) mod write_operation;
