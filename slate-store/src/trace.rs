//! The events of stores for the crate `tracing`. Without the feature `tracing` the functions do nothing.

#![cfg_attr(not(feature = "tracing"), expect(unused_variables, reason = "nothing is reported without the feature"))]

use std::time::Duration;

use crate::Result;

/// Reports the end of a compaction, which may have been automatic. `lengths` are the lengths of the file before and after it.
#[cold]
pub(crate) fn compacted(occasion: &'static str, lengths: [Option<u64>; 2], time: Duration, result: &Result<()>) {
    #[cfg(feature = "tracing")]
    {
        const TARGET: &str = "slate::storage";
        let [bytes_before, bytes_after] = lengths;
        let duration_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        match result {
            Ok(()) => {
                tracing::info!(target: TARGET, occasion, bytes_before, bytes_after, duration_us, "file compacted")
            }
            // An open snapshot prevents the compaction, which is not a failure.
            Err(error) => tracing::debug!(target: TARGET, occasion, duration_us, %error, "file not compacted"),
        }
    }
}
