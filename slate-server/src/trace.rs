//! The spans of connections and of commands for the crate `tracing`. `docs/observability.md` lists them. Without the feature `tracing`
//! nothing is measured, and without a subscriber a command costs a comparison of levels.

use bson::RawDocumentBuf;

use crate::{commands::Call, listener::Address};

#[cfg(feature = "tracing")]
const TARGET: &str = "slate::server";

/// Serves a connection within its span, which stays open as long as the connection.
pub(crate) async fn connection<F: Future>(peer: &Address, serve: F) -> F::Output {
    #[cfg(feature = "tracing")]
    {
        use tracing::Instrument;
        let span = tracing::info_span!(target: TARGET, "connection", peer = tracing::field::display(peer));
        serve.instrument(span).await
    }
    #[cfg(not(feature = "tracing"))]
    {
        let _ = peer;
        serve.await
    }
}

/// Executes a command within its span, and records its duration and the code of its failure.
pub(crate) async fn command(call: &Call<'_>, execute: impl Future<Output = RawDocumentBuf>) -> RawDocumentBuf {
    #[cfg(feature = "tracing")]
    if tracing::enabled!(target: TARGET, tracing::Level::DEBUG) {
        return Box::pin(in_span(call, execute)).await;
    }
    #[cfg(not(feature = "tracing"))]
    let _ = call;
    execute.await
}

#[cfg(feature = "tracing")]
async fn in_span(call: &Call<'_>, execute: impl Future<Output = RawDocumentBuf>) -> RawDocumentBuf {
    use tracing::{Instrument, field::Empty};
    let span = tracing::debug_span!(
        target: TARGET,
        "command",
        command = &*call.command.name,
        database = call.command.database(),
        connection = call.connection.id,
        duration_us = Empty,
        code = Empty,
        error = Empty,
    );
    let start = std::time::Instant::now();
    let reply = execute.instrument(span.clone()).await;
    span.record("duration_us", u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX));
    if let (Ok(code), Ok(message)) = (reply.get_i32("code"), reply.get_str("errmsg")) {
        span.record("code", code);
        span.record("error", message);
    }
    reply
}
