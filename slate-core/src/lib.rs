//! Slate: an embedded document database for Rust services, in MongoDB's language, on the store of your choice.
//!
//! ```
//! use bson::doc;
//! use serde::{Deserialize, Serialize};
//! use slate_core::{Database, Index};
//!
//! #[derive(Serialize, Deserialize)]
//! struct User { name: String, age: i32 }
//!
//! let db = Database::open("memory:")?;
//! let users = db.collection::<User>("users");
//! users.insert_one(&User { name: "Ada".into(), age: 36 })?;
//! users.create_index(Index::on(doc! { "age": 1 }))?;
//! for user in users.find(doc! { "age": { "$gte": 21 } }).sort(doc! { "age": 1 }).run()? {
//!     println!("{}", user?.name);
//! }
//! # Ok::<(), slate_core::Error>(())
//! ```
//!
//! The same question gets the same answer on every store, with every index and with none. What differs from MongoDB is
//! listed in `docs/semantics.md`.
//!
//! | feature | gives |
//! |---|---|
//! | `redb` (on if not said otherwise) | the store `redb:PATH` |
//! | `rocksdb` | the store `rocksdb:PATH`; C++, which takes minutes to build |
//! | `async` | the module `aio`: the same API for async code, on tokio |

#[cfg(feature = "async")]
pub mod aio;
mod bulk_write;
mod catalog;
mod clock;
mod collection;
mod collection_description;
mod command;
mod config;
mod cursor;
mod database;
mod delete;
mod document;
mod engine;
mod entry;
mod error;
mod exec;
mod explain;
mod find;
mod find_one_and;
mod index;
mod index_build;
mod insert_many;
mod interrupt;
mod maintenance;
mod namespace;
mod plan;
mod put_many;
mod quantity;
mod rename;
mod request;
mod retry;
mod scope;
mod snapshot;
mod spill;
mod transaction;
mod transaction_options;
mod update;
mod write;
mod write_operation;

pub use bson;

/// The README's program compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The cookbook's programs run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/cookbook.md")]
struct Cookbook;

/// The program in the page on stores runs.
#[cfg(doctest)]
#[doc = include_str!("../../docs/choosing-a-store.md")]
struct ChoosingAStore;

/// The programs in the page on tuning compile.
#[cfg(doctest)]
#[doc = include_str!("../../docs/tuning.md")]
struct Tuning;

pub use bulk_write::{BulkWrite, BulkWriteResult};
pub use collection::{Collection, ReadCollection};
pub use collection_description::CollectionDescription;
pub use config::Config;
pub use cursor::{Cursor, Documents};
pub use database::{Database, DatabaseBuilder, Durability, Isolation, Size};
pub use delete::Delete;
pub use document::IntoDocument;
pub use engine::Access;
pub use error::{Error, ErrorKind, Result};
pub use explain::{ExecutionStats, Explain};
pub use find::Find;
pub use find_one_and::{FindOneAndDelete, FindOneAndUpdate, ReturnDocument};
pub use index::{CreateIndex, Hint, Index, IndexDescription, IndexState};
pub use insert_many::{InsertMany, InsertManyResult, WriteError};
pub use interrupt::CancelToken;
pub use maintenance::{CollectionStats, Fault, FaultKind, IndexStats, Verify, VerifyProgress, VerifyReport};
pub use put_many::PutManyResult;
pub use rename::Existing;
pub use snapshot::Snapshot;
pub use transaction::Transaction;
pub use transaction_options::TransactionOptions;
pub use update::{Update, UpdateResult};
pub use write_operation::WriteOperation;
