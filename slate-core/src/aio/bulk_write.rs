use std::{fmt, time::Duration};

use super::{Operation, runner::Runner, setters};
use crate::{BulkWriteResult, CancelToken};

/// Many writes as one; see [`Collection::bulk_write`](super::Collection::bulk_write) and
/// [`Database::bulk_write`](super::Database::bulk_write).
///
/// Each operation is done whole or refused whole, and sees what those before it did. What is accepted is committed in one
/// transaction: a crash leaves all of it or nothing.
#[must_use = "nothing is written until `run`"]
pub struct BulkWrite {
    call: crate::BulkWrite,
    runner: Runner,
    token: CancelToken,
}

impl BulkWrite {
    pub(super) fn new(call: crate::BulkWrite, runner: Runner) -> Self {
        Self { call, runner, token: CancelToken::new() }
    }

    setters! {
        /// The operations before the first refused one are done, those after it are not tried. So it is if not said.
        ordered();
        /// Every operation that is not refused is done, in their order.
        unordered();
        /// Ends, with nothing written, when it is not done within this time from now.
        deadline(within: Duration);
    }

    /// Ends, with nothing written, when the token is cancelled.
    pub fn cancel(mut self, token: CancelToken) -> Self {
        self.token = token;
        self
    }

    /// Runs the operations. A refused one is told in the result, which is no error of the call.
    ///
    /// # Errors
    /// As [`slate_core::BulkWrite::run`](crate::BulkWrite::run).
    pub fn run(self) -> Operation<BulkWriteResult> {
        let Self { call, runner, token } = self;
        runner.write(&token, |token| call.cancel(token).run())
    }
}

impl fmt::Debug for BulkWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}
