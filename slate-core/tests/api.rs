//! Calls of the public API that combine others, on every store, blocking and async.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;
#[path = "api/copy.rs"]
mod copy;
#[path = "api/databases.rs"]
mod databases;
#[path = "api/dates_and_uuids.rs"]
mod dates_and_uuids;
#[path = "api/find_one.rs"]
mod find_one;
#[path = "api/migrations.rs"]
mod migrations;
#[path = "api/read_only.rs"]
mod read_only;
#[path = "api/rows.rs"]
mod rows;
#[path = "api/second_process.rs"]
mod second_process;
#[path = "api/validators.rs"]
mod validators;
#[path = "api/views.rs"]
mod views;
#[path = "api/wildcards.rs"]
mod wildcards;
