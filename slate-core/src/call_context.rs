//! The context of a call: its limits, and how it stores documents. Created where a call enters the library, and passed by reference down to the nodes
//! of its plan.

use std::time::Duration;

use slate_query::{held, update::EmptyTimestamps};

use crate::{
    CancelToken,
    interrupt::{CallLimits, Interrupt},
    metrics::Activity,
    spill::{Budget, DiskUse, Memory},
};

/// The limits of time and memory of a call, and how it stores documents.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallContext {
    /// The deadline and the cancel tokens that can end the call.
    pub(crate) interrupt: Interrupt,
    pub(crate) memory: Budget,
    /// Shows the work of the call to other threads.
    pub(crate) activity: Option<Activity>,
    pub(crate) document_validation: DocumentValidation,
    pub(crate) empty_timestamps: EmptyTimestamps,
}

/// Whether documents are checked by the validators of their collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum DocumentValidation {
    #[default]
    Enforced,
    Bypassed,
}

/// The setters of builders. The documentation is at the builder's methods of the same names.
impl CallContext {
    pub(crate) fn deadline(&mut self, within: Duration) {
        self.interrupt.deadline(within);
    }

    pub(crate) fn cancel(&mut self, token: CancelToken) {
        self.interrupt.cancel(token);
    }

    /// Replaces the caller's token by a child of it, or by a new token if there is none, and returns that.
    #[cfg(feature = "async")]
    pub(crate) fn child_token(&mut self) -> CancelToken {
        self.interrupt.child_token()
    }

    pub(crate) fn memory_limit(&mut self, bytes: usize) {
        self.memory.limit = Some(bytes);
    }

    pub(crate) fn allow_disk_use(&mut self, is_allowed: bool) {
        self.memory.disk = if is_allowed { DiskUse::Allowed } else { DiskUse::Refused };
    }

    pub(crate) fn bypass_document_validation(&mut self, is_bypassed: bool) {
        self.document_validation =
            if is_bypassed { DocumentValidation::Bypassed } else { DocumentValidation::Enforced };
    }

    pub(crate) fn bypass_empty_ts_replacement(&mut self, is_bypassed: bool) {
        self.empty_timestamps = if is_bypassed { EmptyTimestamps::Kept } else { EmptyTimestamps::Current };
    }
}

impl CallContext {
    /// Returns the context of a call with these limits of time, and otherwise the defaults.
    pub(crate) fn within(interrupt: Interrupt) -> Self {
        Self { interrupt, ..Self::default() }
    }

    /// Returns the context of a call that a handle with these limits begins now.
    pub(crate) fn begin(limits: &CallLimits) -> Self {
        Self::within(limits.begin())
    }

    /// Returns the memory limit of the call in bytes, or else that of the database; `None` if neither was set.
    pub(crate) fn limit_in(&self, database: &Memory) -> Option<usize> {
        self.memory.limit.or(database.given_limit())
    }

    /// Returns this context with the database's memory limit, unless the call has its own.
    pub(crate) fn of(mut self, database: &Memory) -> Self {
        self.memory.limit = self.limit_in(database);
        self
    }

    /// Calls `work` on this thread; the call's limits of time and memory apply to the evaluation of expressions.
    pub(crate) fn during<R>(&self, work: impl FnOnce() -> crate::Result<R>) -> crate::Result<R> {
        held::within(self.memory.limit, || self.interrupt.during(work))
    }

    /// Returns this context with another interrupt.
    pub(crate) fn with_interrupt(&self, interrupt: Interrupt) -> Self {
        Self { interrupt, activity: self.activity.clone(), ..*self }
    }

    /// Fails if the deadline has passed or a token was cancelled.
    pub(crate) fn check(&self) -> crate::Result<()> {
        self.interrupt.check()
    }
}
