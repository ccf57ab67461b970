//! The public types: the database, its collections, builders, cursors, options and results.
//!
//! ```text
//! Database ─────────────── collection("users") ──▶ Collection<User>        a name, a type and where calls execute
//!  ├─ snapshot() ──▶ Snapshot ── collection(…) ──▶ ReadCollection<User>    all reads see one commit
//!  └─ begin() ──▶ Transaction ── collection(…) ──▶ Collection<User>        reads and writes of one transaction
//!
//! users.find(filter) ──▶ Find<User>                  a builder: collects options, executes nothing
//!                          ├─ run() ───▶ Documents   an iterator of `User`s
//!                          ├─ cursor() ▶ Cursor      lends rows without copying them
//!                          └─ explain(), count(), distinct(…), first(), collect()
//! ```
//!
//! # What must stay true
//!
//! - **Handles are cheap.** A `Database` or `Collection` can be cloned, shared and sent. Getting a collection neither
//!   reads nor creates it: its first write creates it.
//! - **A method without options executes the call** (`insert_one`, `find_by_id`); one with options returns a builder,
//!   which is `#[must_use]` and executes when it is run. An argument that cannot be converted is an error of `run`, not
//!   a panic of the builder, so that calls can be chained.
//! - **One type serves every scope.** `Collection` has the same methods on the database, in a snapshot (its reading half) and in
//!   a transaction, so that a function that takes a collection works in all of them.
//! - **No store in any type.** `Database` and `Collection` have no type parameter for it, and its errors are mapped to
//!   [`Error`](crate::Error) below. A service changes its store by its URL.
//! - **Conversion happens here and nowhere below.** A `T` becomes bytes ([`document`](crate::document)) before a call goes down, and rows become
//!   `T` when they are read. All other folders know only raw BSON.
//! - **Nothing is decided here.** A type checks its own arguments and passes them on. What a query means is in
//!   `slate-query`, how it is executed in [`plan`](crate::plan) and [`exec`](crate::exec). `aio` and `command` rely on
//!   that: they call the same functions.
//!
//! # Files
//!
//! Each call is a file with its builder and its result: `find`, `update`, `insert_many`, … Beside them:
//!
//! | file | contents |
//! |---|---|
//! | [`collection`], [`database`], [`snapshot`], [`transaction`] | the handles |
//! | [`setters`] | setters of options that several builders have (`sort`, `limit`, `hint`, `deadline`, …), each declared and documented once |
//! | [`find`], [`row`] | the query, and its rows: lent documents, or values of a type |
//! | [`document`](crate::document) | arguments that are documents, and conversion from and to `T` |
//! | [`options`](crate::options) | enums that the other folders read, too |
//!
//! A new option of a call is a setter, in `setters` if a second builder will have it. Its async form is a line in `aio`.

pub(crate) mod aggregate;
pub(crate) mod bulk_write;
pub(crate) mod collection;
mod collection_definition;
pub(crate) mod collection_description;
pub(crate) mod collection_options;
pub(crate) mod config;
pub(crate) mod copy_to;
pub(crate) mod database;
pub(crate) mod database_builder;
mod database_changes;
mod database_files;
pub(crate) mod delete;
pub(crate) mod expire;
pub(crate) mod find;
pub(crate) mod find_one;
pub(crate) mod find_one_and;
pub(crate) mod index;
pub(crate) mod index_build;
pub(crate) mod insert_many;
pub(crate) mod live;
pub(crate) mod migrations;
pub(crate) mod modifications;
pub(crate) mod row;
pub(crate) mod setters;
pub(crate) mod snapshot;
pub(crate) mod transaction;
pub(crate) mod update;
pub(crate) mod upsert_many;
pub(crate) mod validator;
pub(crate) mod verify;
pub(crate) mod view;
pub(crate) mod watch;
pub(crate) mod write_operation;
