//! A Slate database over MongoDB's wire protocol, for drivers, shells and web pages.
//!
//! ```no_run
//! use slate_core::aio::Database;
//! use slate_server::Server;
//! use tokio::net::TcpListener;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let database = Database::open("redb:./shop.slate").await?;
//! let listener = TcpListener::bind("127.0.0.1:27017").await?;
//! Server::new(database).serve(listener).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The server presents itself as a replica set of one member, because drivers need that for transactions and retryable writes. It may be
//! embedded beside an open database of the same process. With [`Server::authentication`], clients log in and may do what their roles allow.
//! For tests, [`TestServer`] is a fresh database in memory. `docs/server.md` describes the program `slate serve`, `docs/operators.md`
//! lists the commands.
//!
//! | module | task |
//! |---|---|
//! | `server` | the public API: accepts connections, shuts down |
//! | `test_server` | a server for tests |
//! | `accounts` | the public API for users, without a server |
//! | `auth` | authentication and authorization of clients |
//! | `connection` | one client: reads requests, writes replies, detects a disconnected client |
//! | `commands` | the commands of the server itself, and their table |
//! | `data` | commands of the library: alone, in transactions, as retryable writes, at a snapshot |
//! | `session` | logical sessions with their transactions and the records of their writes |
//! | `operations` | the commands that run |
//! | `protected` | what clients may not do with the server's own databases |
//! | `profiler` | slow commands, as documents of `system.profile` |
//! | `top` | the time that commands have taken on each collection |
//! | `shared` | what all connections share |
//! | `stages` | the stages of a pipeline as they were sent |
//! | `command` | a command and the fields that the server uses |
//! | `clock` | the cluster time |
//! | `api_version` | MongoDB's stable API |
//! | `failure` | errors as replies |
//! | `labels` | error labels, by which drivers decide what to retry |
//! | `fail_points` | simulated failures, for tests of drivers |
//! | `fuzz` | entry points for fuzzers |
//! | `trace` | spans of connections and commands (feature `tracing`) |
//! | `metrics` | metrics for Prometheus (feature `metrics`) |
//! | `listener` | TCP and Unix sockets |
//! | `tls` | certificates, and the handshake (feature `tls`) |
//! | `wire` | messages as bytes |

mod accounts;
mod api_version;
mod auth;
mod clock;
mod command;
mod commands;
mod connection;
mod data;
mod fail_points;
mod failure;
#[doc(hidden)]
pub mod fuzz;
mod labels;
mod listener;
#[cfg(feature = "metrics")]
mod metrics;
mod operations;
mod profiler;
mod protected;
mod server;
mod session;
mod shared;
mod stages;
mod test_server;
#[cfg(feature = "tls")]
mod tls;
mod top;
mod trace;
mod traffic;
mod wire;

pub use accounts::{Account, AccountError, Accounts};
pub use listener::Listener;
pub use server::{Server, Shutdown};
pub use test_server::TestServer;
#[cfg(feature = "tls")]
pub use tls::{ClientCertificates, Tls};
