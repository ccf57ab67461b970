//! Executes calls: what happens between the public API and the planner, the executor and the write path.
//!
//! ```text
//! api, command                a builder collects a Request and a CallContext
//!      │
//!    Scope                    the database, a snapshot, or an open transaction
//!      ├─ read ── Reader      a snapshot and its catalog, or the transaction's
//!      │            bind:     the name becomes a collection, a view, a collation   (Definitions)
//!      │            parse:    the arguments become a Query                         (slate-query)
//!      │            execute:  express path or plan, on the same snapshot           (exec)
//!      └─ write ─ Writer      a transaction: of its own, retried after a conflict, or the open one
//!                   bind, parse, execute                                           (write)
//! ```
//!
//! A request is bound before it is parsed, because parsing depends on the definition of what it names: a collection has
//! a collation, and a view is a pipeline. Both come from the catalog of the snapshot on which the request is then
//! executed, so definitions and data belong to one commit.
//!
//! | file | contents |
//! |---|---|
//! | [`scope`], [`database_calls`] | where a call is executed; calls of the database as a whole |
//! | [`request`], [`definitions`], [`over_view`] | arguments; what they name, and how they are parsed with it; requests over views as pipelines |
//! | [`engine`] | the traits without the store's type: `Engine`, `Reader` and `Writer` |
//! | [`backend`], [`reader`], [`writer`] | their implementation for any store |
//! | [`upkeep`], [`lease`] | work after commits: drops of keyspaces and statistics; its leases on a store that several processes write to |
//! | [`open`] | opens stores by URL; the only file that names them |
//! | [`open_transactions`], [`retry`], [`announcement`] | callers' open transactions; retries after conflicts; announced changes of definitions, for
//! which writers make way |
//! | [`sink`] | `$out` and `$merge` |
//! | [`live`], [`live_change`], [`live_steps`] | live queries: their result, the type of a step, and the steps from one result to the next |
//! | [`change_stream`], `poll` | change streams; how async streams find commits of other processes |
//! | [`measured`] | calls in progress, and the cursor of a query, with their counts and times |
//! | [`transaction_options`] | deadline, durability, isolation and retries of transactions |

mod announcement;
mod backend;
pub(crate) mod change_stream;
mod database_calls;
mod definitions;
mod engine;
mod lease;
pub(crate) mod live;
pub(crate) mod live_change;
mod live_steps;
mod measured;
mod open;
pub(crate) mod open_transactions;
mod over_view;
#[cfg(feature = "async")]
pub(crate) mod poll;
mod reader;
mod request;
pub(crate) mod retry;
mod scope;
mod sink;
pub(crate) mod transaction_options;
mod upkeep;
mod writer;

pub(crate) use definitions::Definitions;
#[cfg(feature = "async")]
pub(crate) use engine::Engine;
pub(crate) use engine::{ReadSet, SharedReader, Writer};
pub use measured::Cursor;
pub(crate) use open::{OpenOptions, open_within, with_store};
pub(crate) use request::{FindArguments, FindResult, Request, RequestSource, ScopedRequest};
pub(crate) use scope::{DatabaseHandle, Scope};
