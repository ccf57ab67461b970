//! A server over real sockets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

#[path = "server/arguments.rs"]
mod arguments;
#[path = "server/auth.rs"]
mod auth;
#[cfg(feature = "tracing")]
#[expect(dead_code, reason = "spans of the server have no messages")]
#[path = "../../slate-core/tests/tracing/capture.rs"]
mod capture;
#[path = "server/client.rs"]
mod client;
#[path = "server/commands.rs"]
mod commands;
#[path = "server/diagnosis.rs"]
mod diagnosis;
#[path = "server/fail_points.rs"]
mod fail_points;
#[path = "server/index_builds.rs"]
mod index_builds;
#[path = "server/limits.rs"]
mod limits;
#[path = "server/ownership.rs"]
mod ownership;
#[path = "../../slate-core/tests/common/passed_on.rs"]
mod passed_on;
#[path = "server/retryable.rs"]
mod retryable;
#[cfg(feature = "tracing")]
#[path = "server/tracing.rs"]
mod spans;
#[cfg(feature = "tls")]
#[path = "server/tls.rs"]
mod tls;
#[path = "server/transactions.rs"]
mod transactions;
#[path = "../../slate-core/tests/with_store/unsure.rs"]
mod unsure;
#[path = "server/waiting.rs"]
mod waiting;
