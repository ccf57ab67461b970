//! The locks of the optimistic layer and of the memory store: those of the standard library, or, in tests of interleavings, those of `shuttle`,
//! which runs one thread at a time and chooses the next one from a seed.

#[cfg(not(simulated))]
pub(crate) use std::{
    sync::{Condvar, Mutex, MutexGuard, RwLock, atomic},
    thread::yield_now,
};

#[cfg(simulated)]
pub(crate) use shuttle::{
    sync::{Condvar, Mutex, MutexGuard, RwLock, atomic},
    thread::yield_now,
};
