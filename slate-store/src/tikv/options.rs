use std::time::Duration;

use super::cluster::MAX_MESSAGE;

/// How the store communicates with the cluster.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) request_timeout: Duration,
    pub(super) patience: Duration,
    pub(super) unchecked_age: Duration,
    /// Maximum length of an answer, in bytes.
    pub(super) max_message: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            request_timeout: Duration::from_secs(4),
            patience: Duration::from_secs(30),
            unchecked_age: Duration::from_secs(60),
            max_message: MAX_MESSAGE,
        }
    }
}

impl Options {
    /// Sets how long one request may take before it is sent again, perhaps to another node. 4 seconds by default.
    #[must_use]
    pub fn request_timeout(self, request_timeout: Duration) -> Self {
        Self { request_timeout, ..self }
    }

    /// Sets how long a read, or the beginning of a transaction, is repeated while nodes are unreachable or elect leaders. A commit waits four
    /// times as long, then its outcome is unknown. 30 seconds by default.
    #[must_use]
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Sets the age from which on each read of a snapshot also checks the safepoint, because garbage collection may have passed it. Must be less
    /// than the `keep` of every [`collect_garbage`](crate::Store::collect_garbage) of the cluster. 60 seconds by default.
    #[must_use]
    pub fn unchecked_age(self, unchecked_age: Duration) -> Self {
        Self { unchecked_age, ..self }
    }
}
