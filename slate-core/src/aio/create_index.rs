use std::{
    fmt,
    time::{Duration, Instant},
};

use bson::RawDocumentBuf;

use super::{Operation, runner::Runner};
use crate::{CancelToken, Index};

/// The creation of an index; see [`Collection::build_index`](super::Collection::build_index).
#[must_use = "nothing is created until `run`"]
pub struct CreateIndex {
    collection: crate::Collection<RawDocumentBuf>,
    index: Index,
    runner: Runner,
    token: CancelToken,
    deadline: Option<Instant>,
    progress: Option<Box<dyn FnMut(u64) + Send>>,
}

impl CreateIndex {
    pub(super) fn new(collection: crate::Collection<RawDocumentBuf>, index: Index, runner: Runner) -> Self {
        Self { collection, index, runner, token: CancelToken::new(), deadline: None, progress: None }
    }

    /// Tells, every thousand or so documents, how many have been read. It is called on the thread that builds the index.
    pub fn progress(mut self, progress: impl FnMut(u64) + Send + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Ends, with no index created, when it is not done within this time from now.
    pub fn deadline(mut self, within: Duration) -> Self {
        // A deadline beyond what the clock can express is none.
        self.deadline = Instant::now().checked_add(within);
        self
    }

    /// Ends, with no index created, when the token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.token = token;
        self
    }

    /// Creates the index, in a transaction of its own, and gives back its name.
    ///
    /// # Errors
    /// As [`slate_core::Collection::create_index`](crate::Collection::create_index).
    pub fn run(self) -> Operation<String> {
        let Self { collection, index, runner, token, deadline, progress } = self;
        runner.write(&token, move |token| {
            let mut call = collection.build_index(index).cancel(token);
            if let Some(progress) = progress {
                call = call.progress(progress);
            }
            if let Some(deadline) = deadline {
                call = call.deadline(deadline.saturating_duration_since(Instant::now()));
            }
            call.run()
        })
    }
}

impl fmt::Debug for CreateIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateIndex").field("collection", &self.collection).field("index", &self.index).finish()
    }
}
