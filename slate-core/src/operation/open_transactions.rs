//! Refuses writes outside an open transaction by the code that has it open, at once and on every store.
//!
//! Such a write is a mistake: it is not part of the transaction. A store with one writer at a time would let it wait for the
//! transaction that waits for it, and a store with concurrent writers would commit it separately.
//!
//! A transaction belongs to the thread that has begun it; in async code to the task, or to the thread of `block_on` outside of
//! tasks. A call that is executed by a thread of the pool is made on behalf of its task, which [`Caller`]
//! passes on. A transaction that was moved to another thread or task still belongs to the first one: writes of the other one are
//! not recognized.

#[cfg(feature = "async")]
use std::cell::Cell;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
};

use slate_query::Code;

use crate::{Error, ErrorKind, Result};

/// The thread or task that has begun a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    Thread(ThreadId),
    #[cfg(feature = "async")]
    Task(tokio::task::Id),
    /// The future that `block_on` executes on a thread.
    #[cfg(feature = "async")]
    Root(ThreadId),
}

/// The owners of the open transactions of a database. Transactions of single calls are not registered.
#[derive(Debug, Default)]
pub(crate) struct OpenTransactions {
    owners: Mutex<Vec<Owner>>,
    /// Number of owners, so that a check takes the lock only if there are some.
    count: AtomicUsize,
}

/// The registration of an open transaction, until it is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    transactions: Arc<OpenTransactions>,
    owner: Owner,
}

impl OpenTransactions {
    /// Registers a transaction that this thread begins.
    pub(crate) fn register(self: &Arc<Self>) -> Registration {
        self.register_owner(Owner::Thread(thread::current().id()))
    }

    /// Registers a transaction that `caller`'s task begins.
    #[cfg(feature = "async")]
    pub(crate) fn register_task(self: &Arc<Self>, caller: Caller) -> Registration {
        self.register_owner(caller.task)
    }

    fn register_owner(self: &Arc<Self>, owner: Owner) -> Registration {
        self.owners().push(owner);
        self.count.fetch_add(1, Ordering::Relaxed);
        Registration { transactions: Arc::clone(self), owner }
    }

    /// Fails if this thread, or the task on whose behalf it works, has a transaction open.
    ///
    /// # Errors
    /// `Reentrant`.
    pub(crate) fn check_outside(&self) -> Result<()> {
        // Only registrations by the same thread or task matter, and these happened before.
        if self.count.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let is_callers = |owner: &Owner| {
            #[cfg(feature = "async")]
            if Caller::current().owns(*owner) || ON_BEHALF_OF.get().is_some_and(|caller| caller.owns(*owner)) {
                return true;
            }
            *owner == Owner::Thread(thread::current().id())
        };
        if !self.owners().iter().any(is_callers) {
            return Ok(());
        }
        let message = "a transaction is open here, and this write is not part of it: \
                       use the transaction's collections, or end the transaction first";
        Err(Error::new(ErrorKind::Reentrant, Code::ILLEGAL_OPERATION, message))
    }

    /// No code panics under this lock.
    fn owners(&self) -> MutexGuard<'_, Vec<Owner>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut owners = self.transactions.owners();
        if let Some(at) = owners.iter().position(|owner| *owner == self.owner) {
            owners.swap_remove(at);
            self.transactions.count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The thread and the task that make a call, for the thread that executes it.
#[cfg(feature = "async")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    thread: ThreadId,
    task: Owner,
}

#[cfg(feature = "async")]
thread_local! {
    /// On whose behalf this thread works.
    static ON_BEHALF_OF: Cell<Option<Caller>> = const { Cell::new(None) };
}

#[cfg(feature = "async")]
impl Caller {
    /// Returns the thread, and the task that it executes or on whose behalf it works.
    pub(crate) fn current() -> Self {
        let thread = thread::current().id();
        let own_task = || tokio::task::try_id().map_or(Owner::Root(thread), Owner::Task);
        Self { thread, task: ON_BEHALF_OF.get().map_or_else(own_task, |caller| caller.task) }
    }

    /// Executes `work` on this caller's behalf.
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> R {
        /// Restores the previous caller, also after a panic.
        struct Restore(Option<Caller>);

        impl Drop for Restore {
            fn drop(&mut self) {
                ON_BEHALF_OF.set(self.0);
            }
        }

        let _restore = Restore(ON_BEHALF_OF.replace(Some(self)));
        work()
    }

    fn owns(self, owner: Owner) -> bool {
        owner == self.task || owner == Owner::Thread(self.thread)
    }
}
