//! Slate: an embedded document database for Rust services, with MongoDB's query language, on the store of your choice.
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
//! users.create_index(Index::on(doc! { "age": 1 })).run()?;
//! for user in users.find(doc! { "age": { "$gte": 21 } }).sort(doc! { "age": 1 }).run()? {
//!     println!("{}", user?.name);
//! }
//! # Ok::<(), slate_core::Error>(())
//! ```
//!
//! The same query returns the same result on every store, with every index and with none. The repository has pages in
//! `docs`: `cookbook.md` has programs for many tasks, `operators.md` and `aggregation.md` list what queries can
//! contain, `semantics.md` lists the differences from MongoDB, `guarantees.md` says what is durable and which files
//! later versions read, `migrating.md` says how to migrate from another database.
//!
//! Methods that have options return a builder, and `run` executes it: `users.insert_many(&documents).ordered(false).run()?`.
//! Methods without options execute at once: `users.insert_one(&document)?`. In the module `aio` both are awaited, a builder
//! with or without `run`.
//!
//! | feature | adds |
//! |---|---|
//! | `redb` (default) | the store `redb:PATH` |
//! | `collation` (default) | collations: 29 packages with the data of all languages |
//! | `rocksdb` | the store `rocksdb:PATH`; builds C++ for several minutes |
//! | `tikv` | the store `tikv://HOST:PORT,…/NAME`, a cluster that processes share; some 120 packages. `docs/distributed.md` says what it promises |
//! | `async` | the module `aio`: the same API for async code on tokio |
//! | `tracing` (default) | spans and events for the crate `tracing`; `docs/observability.md` lists them |
//! | `chrono`, `time`, `uuid` | conversions of these crates' types in documents and filters: `bson`'s features of the same names |
//! | `failpoints` | points at which crash tests end the process; only for tests |
//! | `unstable-testing` | methods that force a plan, for tests; they may change in any release |

#[cfg(feature = "async")]
pub mod aio;
mod api;
mod call;
mod call_context;
mod catalog;
mod changes;
mod clock;
mod command;
mod commit;
mod debug;
mod document;
mod entry;
mod error;
mod exec;
mod explain;
mod interrupt;
mod key_range;
mod metrics;
mod namespace;
mod options;
mod plan;
mod quota;
mod spill;
mod stage_names;
mod stats;
mod units;
mod verify;
mod write;

pub use bson;
pub use slate_query::names::OperatorKind;
pub use slate_store::{Access, Durability, OldestSnapshot, Recovery, Sharing, Size as StorageSize, Verification};

/// BSON values that are borrowed from a document's bytes and converted on demand. They convert from and to
/// [`bson`]'s raw values.
pub mod raw {
    pub use slate_query::{
        number::truth,
        raw::{Kind, OwnedValue, Value},
    };
}

/// Compiles the README's program.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// Runs the cookbook's programs.
#[cfg(doctest)]
#[doc = include_str!("../../docs/cookbook.md")]
struct Cookbook;

/// Runs the program on the page about stores.
#[cfg(doctest)]
#[doc = include_str!("../../docs/choosing-a-store.md")]
struct ChoosingAStore;

/// Compiles the programs on the page about tuning.
#[cfg(doctest)]
#[doc = include_str!("../../docs/tuning.md")]
struct Tuning;

/// Runs the programs on the page about observability.
#[cfg(doctest)]
#[doc = include_str!("../../docs/observability.md")]
struct Observability;

/// Runs the programs on the page about migrating.
#[cfg(doctest)]
#[doc = include_str!("../../docs/migrating.md")]
struct Migrating;

pub use api::aggregate::Aggregate;
pub use api::bulk_write::{BulkWrite, BulkWriteResult};
pub use api::collection::{Collection, ReadCollection};
pub use api::collection_description::CollectionDescription;
pub use api::collection_options::CollectionOptions;
pub use api::config::Config;
pub use api::copy_to::{CopyProgress, CopyResult, CopyTarget, CopyTo, ExistingCollections};
pub use api::database::Database;
pub use api::database_builder::DatabaseBuilder;
pub use api::delete::Delete;
pub use api::expire::{Expire, Expired};
pub use api::find::{Count, Distinct, Documents, Find};
pub use api::find_one::FindOne;
pub use api::find_one_and::{FindOneAndDelete, FindOneAndUpdate};
pub use api::index::{CreateIndex, Index};
pub use api::insert_many::{InsertMany, InsertManyResult, WriteError};
pub use api::live::LiveQuery;
pub use api::migrations::{MigrationResult, Migrations};
pub use api::modifications::{IntoUpdate, UpdateModifications};
pub use api::row::Row;
pub use api::snapshot::Snapshot;
pub use api::transaction::Transaction;
pub use api::update::{Update, UpdateResult};
pub use api::upsert_many::UpsertManyResult;
pub use api::validator::Validator;
pub use api::verify::Verify;
pub use api::view::View;
pub use api::watch::{ChangeEvent, ChangeStream, Watch};
pub use api::write_operation::WriteOperation;
pub use call::Cursor;
pub use call::live_change::LiveChange;
pub use call::transaction_options::TransactionOptions;
pub use catalog::{IndexDescription, IndexState};
pub use command::{Commands, OpenCursor};
pub use document::IntoDocument;
pub use error::{Error, ErrorKind, Result};
pub use explain::{ExecutionStats, Explain};
pub use interrupt::CancelToken;
pub use metrics::{Activity, Histogram, Metrics, OperationKind, OperationMetrics, Prometheus, SlowQuery};
pub use options::{
    ChangeLog, ExplainVerbosity, FullDocument, FullDocumentBeforeChange, Hint, Isolation, RenameTarget, ReturnDocument,
    ValidationAction, ValidationLevel,
};
pub use quota::{Quota, QuotaPlace};
pub use stats::{ChangeLogStats, CollectionStats, DatabaseStats, IndexStats};
pub use verify::{VerifyFinding, VerifyFindingKind, VerifyProgress, VerifyReport};
