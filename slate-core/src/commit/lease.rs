use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use slate_query::Code;
use slate_store::{Capabilities, Keyspace};

use crate::{Error, ErrorKind, Result, call_context::CallContext};

/// The time within which a transaction commits on a store with [`Capabilities::writer_lease`]. There writers do not guard the definitions
/// that they rely on; a change of a definition waits instead until every writer that began before it has committed or failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriterLease {
    begun: Instant,
    lease: Duration,
}

impl WriterLease {
    /// Begins the lease of a transaction, before its view is opened. `None` on a store without leases.
    pub(crate) fn begin(capabilities: Capabilities) -> Option<Self> {
        capabilities.writer_lease.map(|lease| Self { begun: Instant::now(), lease })
    }

    /// Checks, just before the commit, that the lease has not ended.
    ///
    /// # Errors
    /// `TransactionExceededLifetimeLimitSeconds` (290).
    pub(crate) fn check(self) -> Result<()> {
        if self.begun.elapsed() <= self.lease {
            return Ok(());
        }
        let message = format!(
            "the transaction lasted longer than {:?}, the time that a writer of this store has: other processes may have changed the \
             definitions that it relies on",
            self.lease
        );
        Err(Error::new(ErrorKind::Interrupted, Code(290), message))
    }
}

/// Returns the time after a change of a definition from which on no writer commits that began before it: half as long again as the lease,
/// because a commit takes time after its check.
fn settling_time(lease: Duration) -> Duration {
    lease + lease / 2
}

/// Waits, after a change of a definition, until no writer commits any more that began before it. Does not wait on a store without leases.
///
/// # Errors
/// Fails when the call is interrupted.
pub(crate) fn await_older_writers(capabilities: Capabilities, call: &CallContext) -> Result<()> {
    /// Between two checks of the interrupt.
    const PAUSE: Duration = Duration::from_millis(10);
    let Some(lease) = capabilities.writer_lease else { return Ok(()) };
    let (start, whole) = (Instant::now(), settling_time(lease));
    loop {
        call.check()?;
        let left = whole.saturating_sub(start.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(PAUSE));
    }
}

/// The keyspaces that this process drops once no writer commits any more that may write to them.
#[derive(Debug, Default)]
pub(crate) struct UnlinkedKeyspaces(Mutex<Vec<(Instant, Keyspace)>>);

impl UnlinkedKeyspaces {
    /// Adds keyspaces that were unlinked just now. Returns those that can be dropped: the same ones on a store without leases.
    pub(crate) fn droppable_after(&self, unlinked: Vec<Keyspace>, capabilities: Capabilities) -> Vec<Keyspace> {
        let Some(lease) = capabilities.writer_lease else { return unlinked };
        let (now, settling) = (Instant::now(), settling_time(lease));
        // No code under this lock can panic between two dependent updates.
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend(unlinked.into_iter().map(|keyspace| (now, keyspace)));
        waiting
            .extract_if(.., |(since, _)| now.duration_since(*since) >= settling)
            .map(|(_, keyspace)| keyspace)
            .collect()
    }
}
