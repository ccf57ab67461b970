//! The transactions that callers have open, and a check for a mistake: code that has a transaction open and writes
//! outside of it. Such a write would be committed separately, so it fails, without waiting and on every store.
//!
//! A transaction itself belongs to its handle, and moves between threads and tasks. The check records the owner that has begun it: a thread; in async
//! code the task, or the thread of `block_on` outside of tasks. A call that a thread of the pool executes is made on behalf of its task, which
//! [`Caller`] names. The check does not find writes outside of a transaction by a thread or task to which it was moved.

#[cfg(feature = "async")]
use std::cell::Cell;
use std::{
    collections::hash_map::Entry,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
};

use ahash::AHashMap;
use slate_query::Code;

use super::engine::Writer;
use crate::{Error, ErrorKind, Result};

/// An open transaction: its writer, until it is committed or rolled back. Clones share it.
#[derive(Clone)]
pub(crate) struct OpenTransaction(Arc<Shared>);

struct Shared {
    writer: Mutex<Option<Box<dyn Writer>>>,
    /// The thread that executes an operation now. The caller's code that this operation calls (a progress callback, a
    /// `Deserialize`) must not start another operation of the same transaction.
    caller: Mutex<Option<ThreadId>>,
    /// Whether an operation has failed with a conflict. Needed because the caller may return an error of another type.
    has_conflict: AtomicBool,
    /// The registration of the thread or task that has begun the transaction, until the end or `release`. `None` if it is detached.
    owner: Mutex<Option<Registration>>,
}

impl OpenTransaction {
    pub(crate) fn new(writer: Box<dyn Writer>, owner: Option<Registration>) -> Self {
        Self(Arc::new(Shared {
            writer: Mutex::new(Some(writer)),
            caller: Mutex::new(None),
            has_conflict: AtomicBool::new(false),
            owner: Mutex::new(owner),
        }))
    }

    /// Removes the registration: the thread or task that has begun the transaction can write outside of it again.
    pub(crate) fn release(&self) {
        drop(unpoisoned(&self.0.owner).take());
    }

    /// Returns whether an operation has failed with an error after which the whole transaction can be retried.
    pub(crate) fn has_conflict(&self) -> bool {
        self.0.has_conflict.load(Ordering::Relaxed)
    }

    /// Removes and returns the writer; later operations fail.
    pub(crate) fn take(&self) -> Result<Box<dyn Writer>> {
        self.lock()?.take().ok_or_else(ended)
    }

    /// Removes the registration, and rolls the transaction back unless it has ended. A nested call of one of its operations does not roll it back.
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

    /// Locks the writer; waits for operations of other threads. Fails for a nested operation of this thread, which would deadlock.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
    /// How many transactions each owner has open.
    owners: Mutex<AHashMap<Owner, usize>>,
    /// Number of open transactions. A check takes the lock only if it is not 0.
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
        *unpoisoned(&self.owners).entry(owner).or_default() += 1;
        self.count.fetch_add(1, Ordering::Relaxed);
        Registration { transactions: Arc::clone(self), owner }
    }

    /// Fails if the caller, this thread or the task on whose behalf it works, has a transaction open.
    ///
    /// # Errors
    /// `Reentrant`.
    pub(crate) fn check_outside(&self) -> Result<()> {
        // `Relaxed`: only registrations by the same thread or task matter, and these happened before.
        if self.count.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let owners = unpoisoned(&self.owners);
        let is_open = owners.contains_key(&Owner::Thread(thread::current().id()));
        #[cfg(feature = "async")]
        let is_open = ON_BEHALF_OF.get().into_iter().chain([Caller::current()]).fold(is_open, |is_open, caller| {
            is_open || owners.contains_key(&caller.task) || owners.contains_key(&Owner::Thread(caller.thread))
        });
        if !is_open {
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
        if let Entry::Occupied(mut open) = owners.entry(self.owner) {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
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
}
