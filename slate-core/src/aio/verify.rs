use std::{
    fmt,
    time::{Duration, Instant},
};

use super::{Operation, runner::Runner};
use crate::{CancelToken, Result, VerifyProgress, VerifyReport};

/// A look through a collection, or all of them, for damage; see
/// [`ReadCollection::verify`](super::ReadCollection::verify) and [`Database::verify`](super::Database::verify).
#[must_use = "nothing is verified until `run`"]
pub struct Verify {
    call: Box<dyn FnOnce() -> Result<crate::Verify<'static>> + Send>,
    runner: Runner,
    token: CancelToken,
    deadline: Option<Instant>,
    progress: Option<Progress>,
}

type Progress = Box<dyn FnMut(&VerifyProgress<'_>) + Send>;

impl Verify {
    pub(super) fn new(call: impl FnOnce() -> Result<crate::Verify<'static>> + Send + 'static, runner: Runner) -> Self {
        Self { call: Box::new(call), runner, token: CancelToken::new(), deadline: None, progress: None }
    }

    /// Tells, every thousand or so documents, how far it has come. It is called on the thread that verifies.
    pub fn progress(mut self, progress: impl FnMut(&VerifyProgress<'_>) + Send + 'static) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Ends with an error when it is not done within this time from now.
    pub fn deadline(mut self, within: Duration) -> Self {
        // A deadline beyond what the clock can express is none.
        self.deadline = Instant::now().checked_add(within);
        self
    }

    /// Ends with an error when the token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.token = token;
        self
    }

    /// Looks through all of it, as of one commit, while others go on writing. A fault is told in the report, which is no
    /// error of the call.
    ///
    /// # Errors
    /// As [`slate_core::Verify::run`](crate::Verify::run).
    pub fn run(self) -> Operation<VerifyReport> {
        let Self { call, runner, token, deadline, progress } = self;
        runner.read(&token, move |token| {
            let mut call = call()?.cancel(token);
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

impl fmt::Debug for Verify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verify").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}
