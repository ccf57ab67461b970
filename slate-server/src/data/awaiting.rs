//! `getMore` of a change stream: waits for an event without occupying a thread, for as long as the command allows.

use std::{sync::Arc, time::Duration};

use bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use tokio::time::{Instant, timeout};

use crate::{commands::Call, failure::Result};

/// How long a batch is awaited if the command does not specify it, as in MongoDB.
const AWAIT: Duration = Duration::from_secs(1);

/// How often a waiting command checks whether it, or its cursor, was killed.
const LOOK: Duration = Duration::from_millis(100);

/// Executes a `getMore`.
pub(super) async fn get_more(call: &Call<'_>, command: Arc<RawDocumentBuf>) -> Result<RawDocumentBuf> {
    let commands = call.commands();
    let cursor = cursor(call);
    let until = Instant::now() + most(call)?;
    loop {
        // Registered before the batch is read, so that no commit in between is missed.
        let mut changed = commands.changed(cursor);
        let reply = commands.run_shared(&command, call.running()).await?;
        if !changed.is_of_stream() || !is_empty(&reply) {
            return Ok(reply);
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(reply);
            }
            let is_woken = timeout(left.min(LOOK), &mut changed).await.is_ok();
            // The next attempt returns the reason for the end of the wait.
            if is_woken || call.token.is_cancelled() || !commands.changed(cursor).is_of_stream() {
                break;
            }
        }
    }
}

/// Whether the cursor of a `getMore` is that of a change stream.
pub(super) fn is_of_stream(call: &Call<'_>) -> bool {
    call.commands().changed(cursor(call)).is_of_stream()
}

fn cursor(call: &Call<'_>) -> i64 {
    call.command.get("getMore").ok().flatten().and_then(|cursor| cursor.as_i64()).unwrap_or_default()
}

/// Returns how long the command may wait.
fn most(call: &Call<'_>) -> Result<Duration> {
    let millis = match call.command.get("maxTimeMS")? {
        Some(RawBsonRef::Int32(millis)) => u64::try_from(millis).ok(),
        Some(RawBsonRef::Int64(millis)) => u64::try_from(millis).ok(),
        // The library rejects other numbers.
        _ => None,
    };
    Ok(millis.filter(|millis| *millis > 0).map_or(AWAIT, Duration::from_millis))
}

/// Whether a reply has no documents, and its cursor is still open.
fn is_empty(reply: &RawDocument) -> bool {
    let Ok(cursor) = reply.get_document("cursor") else { return false };
    cursor.get_i64("id").is_ok_and(|id| id != 0)
        && cursor.get_array("nextBatch").is_ok_and(|batch| batch.into_iter().next().is_none())
}
