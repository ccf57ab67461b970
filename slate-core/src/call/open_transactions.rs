//! The transactions that callers have open. While code has a transaction open, its writes outside of the transaction are
//! refused, at once and on every store.
//!
//! Such a write is a mistake: it is not part of the transaction, and would be committed separately.
//!
//! A transaction belongs to the thread that has begun it; in async code to the task, or to the thread of `block_on`
//! outside of tasks. A call that is executed by a thread of the pool is made on behalf of its task, which [`Caller`]
//! passes on. A transaction that was moved to another thread or task still belongs to the first one: writes of the new
//! thread or task are not recognized.

#[cfg(feature = "async")]
use std::cell::Cell;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
};

use slate_query::Code;

use super::engine::Writer;
use crate::{Error, ErrorKind, Result};

/// A transaction's writer, until it is committed or rolled back.
#[derive(Clone)]
pub(crate) struct OpenTransaction(Arc<Shared>);

struct Shared {
    writer: Mutex<Option<Box<dyn Writer>>>,
    /// The thread that runs an operation. The caller's code that runs within it (a progress callback, a `Deserialize`)
    /// must not start another operation of the same transaction.
    caller: Mutex<Option<ThreadId>>,
    /// Whether an operation has failed with a conflict. The caller may have turned its error into another type.
    has_conflict: AtomicBool,
    /// The thread and the task that have begun the transaction, until it ends or is given up.
    registrations: Mutex<Vec<Registration>>,
}

impl OpenTransaction {
    pub(crate) fn new(writer: Box<dyn Writer>, registration: Registration) -> Self {
        Self(Arc::new(Shared {
            writer: Mutex::new(Some(writer)),
            caller: Mutex::new(None),
            has_conflict: AtomicBool::new(false),
            registrations: Mutex::new(vec![registration]),
        }))
    }

    /// Adds the registration of the task that has begun it.
    #[cfg(feature = "async")]
    pub(crate) fn add_registration(&self, registration: Registration) {
        unpoisoned(&self.0.registrations).push(registration);
    }

    /// Allows the thread and the task that have begun the transaction to write outside of it again.
    pub(crate) fn release(&self) {
        unpoisoned(&self.0.registrations).clear();
    }

    /// Returns whether an operation has failed with an error after which the whole transaction can be retried.
    pub(crate) fn has_conflict(&self) -> bool {
        self.0.has_conflict.load(Ordering::Relaxed)
    }

    /// Takes the writer out, so that later operations fail.
    pub(crate) fn take(&self) -> Result<Box<dyn Writer>> {
        self.lock()?.take().ok_or_else(ended)
    }

    /// Rolls the transaction back if it has not been committed.
    pub(crate) fn end(&self) {
        self.release();
        if let Ok(mut writer) = self.lock() {
            drop(writer.take());
        }
    }

    pub(super) fn with<R>(&self, work: impl FnOnce(&mut dyn Writer) -> Result<R>) -> Result<R> {
        let mut writer = self.lock()?;
        let _calling = Calling::note(&self.0.caller);
        let result = work(&mut **writer.as_mut().ok_or_else(ended)?);
        if result.as_ref().is_err_and(Error::is_retryable) {
            self.0.has_conflict.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Waits for an operation of another thread. Fails for a nested operation of this thread, which would deadlock.
    fn lock(&self) -> Result<MutexGuard<'_, Option<Box<dyn Writer>>>> {
        if *unpoisoned(&self.0.caller) == Some(thread::current().id()) {
            let message = "a nested call on the same transaction would wait for itself";
            return Err(Error::new(ErrorKind::Reentrant, Code::ILLEGAL_OPERATION, message));
        }
        Ok(self.0.writer.lock().unwrap_or_else(|poisoned| {
            // An operation panicked and may be partially applied, so the transaction is rolled back.
            let mut writer = poisoned.into_inner();
            *writer = None;
            writer
        }))
    }
}

/// Marks this thread's operation as running until it is dropped.
struct Calling<'c>(&'c Mutex<Option<ThreadId>>);

impl<'c> Calling<'c> {
    fn note(caller: &'c Mutex<Option<ThreadId>>) -> Self {
        *unpoisoned(caller) = Some(thread::current().id());
        Self(caller)
    }
}

impl Drop for Calling<'_> {
    fn drop(&mut self) {
        *unpoisoned(self.0) = None;
    }
}

/// Ignores poisoning: what these locks protect is valid after a panic.
fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ended() -> Error {
    Error::transaction_over("it was committed or rolled back")
}

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
        unpoisoned(&self.owners).push(owner);
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
        if !unpoisoned(&self.owners).iter().any(is_callers) {
            return Ok(());
        }
        let message = "a transaction is open here, and this write is not part of it: \
                       use the transaction's collections, or end the transaction first";
        Err(Error::new(ErrorKind::Reentrant, Code::ILLEGAL_OPERATION, message))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut owners = unpoisoned(&self.transactions.owners);
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
    /// The caller on whose behalf this thread works.
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
