//! The memory of the values that expressions compute, counted against the limit of their call.
//!
//! Operands, variables, the parts of an array and the lists that functions make are held while others are computed, at each level of an
//! expression, so their sum is counted, in a cell of the thread. What was computed while an argument was parsed is
//! counted separately, until the end of the work that parsed it.
//!
//! ```text
//! slate-core    within(limit, work)    the call begins to use its thread
//! here          Held                   a list or a buffer counts what it holds, before it grows if it can
//! parsers       keep_constant(…)?      a constant or a compiled regular expression stays with what was parsed
//! ```
//!
//! What must stay true: a `Held` is dropped on the thread that has counted it. So values that stay with a call when it leaves its thread
//! (groups, windows, rows) are not counted here, but by what holds them.

use std::cell::Cell;

use crate::{Code, Error, Result};

/// A list is counted each time that it has grown by this much, so that short ones count nothing. Expressions nest 180 levels deep at
/// most, and each level holds a few lists, so that less than 2 MiB are not counted.
const STEP: usize = 1 << 12;

/// The limit in bytes if none is set: four of the largest values.
const DEFAULT_LIMIT: usize = 256 << 20;

/// Minimum limit, in bytes. A smaller one would refuse what usual documents need.
const LEAST_LIMIT: usize = 1 << 20;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    /// The limit of the call in bytes; `None` if none is set.
    static LIMIT: Cell<Option<usize>> = const { Cell::new(None) };
    /// The bytes of computed constants of the call; `None` outside of calls.
    static CONSTANTS: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Restores the limit of the outer call when it is dropped.
struct Outer {
    limit: Option<usize>,
    constants: Option<usize>,
}

impl Drop for Outer {
    fn drop(&mut self) {
        LIMIT.set(self.limit);
        CONSTANTS.set(self.constants);
    }
}

/// Calls `work`, whose expressions on this thread hold up to `limit` bytes, but at least 1 MiB. `None`: the limit of the call around it,
/// or else 256 MiB. The constants that `work` computes are counted until it ends.
pub fn within<R>(limit: Option<usize>, work: impl FnOnce() -> R) -> R {
    let outer = Outer { limit: LIMIT.get(), constants: CONSTANTS.get() };
    LIMIT.set(limit.map(|limit| limit.max(LEAST_LIMIT)).or(outer.limit));
    CONSTANTS.set(Some(outer.constants.unwrap_or_default()));
    work()
}

/// Calls `work` without counting the constants that it parses. They were counted before: those of a definition when it was stored.
pub fn uncounted<R>(work: impl FnOnce() -> R) -> R {
    let _outer = Outer { limit: LIMIT.get(), constants: CONSTANTS.replace(None) };
    work()
}

/// Returns the limit of the call in bytes; 256 MiB if none is set.
pub(crate) fn limit() -> usize {
    LIMIT.get().unwrap_or(DEFAULT_LIMIT)
}

/// Returns the bytes that the accumulators of one group may take: half of the limit if one was set, because their values are copied into a row.
#[inline]
pub(crate) fn group_limit() -> usize {
    LIMIT.get().map_or(DEFAULT_LIMIT, |limit| limit / 2)
}

/// Returns the error of a call whose values exceed its limit.
#[cold]
pub(crate) fn exceeded(what: &str) -> Error {
    let limit = limit();
    let message = format!("{what} more than the {limit} bytes of memory_limit allow; set a larger one");
    Error::new(Code::EXCEEDED_MEMORY_LIMIT, message)
}

/// Adds the computed field to an error of exceeded memory. Returns other errors unchanged.
#[cold]
pub(crate) fn located(error: Error, field: &[u8]) -> Error {
    if error.code() == Code::EXCEEDED_MEMORY_LIMIT { error.at(String::from_utf8_lossy(field)) } else { error }
}

/// Returns the error of a list or a buffer that was not counted, because all together exceed the limit of the call.
#[cold]
pub(crate) fn too_many() -> Error {
    exceeded("the values that an expression holds at the same time take")
}

/// Fails if the accumulators of one group take too many bytes.
///
/// # Errors
/// `ExceededMemoryLimit` (146) if they take more than half of the limit of the call, or more than 256 MiB if none is set.
#[inline]
pub fn check_group(bytes: usize) -> Result<()> {
    if bytes <= LEAST_LIMIT / 2 || bytes <= group_limit() {
        return Ok(());
    }
    Err(exceeded("the accumulators of one group take"))
}

/// Counts a constant that was computed, or a regular expression that was compiled, while parsing. Does nothing outside of [`within`].
///
/// # Errors
/// `ExceededMemoryLimit` (146) if all of the call together exceed its limit.
pub(crate) fn keep_constant(bytes: usize) -> Result<()> {
    let Some(constants) = CONSTANTS.get() else { return Ok(()) };
    let constants = constants.saturating_add(bytes);
    if constants > limit() {
        return Err(exceeded("the computed constants and the regular expressions of a call take"));
    }
    CONSTANTS.set(Some(constants));
    Ok(())
}

/// The memory of a list of values or a buffer, counted until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Held {
    bytes: usize,
    counted: usize,
}

impl Held {
    /// Counts memory that is about to be allocated, until the returned value is dropped.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub(crate) fn of(bytes: usize) -> Result<Self> {
        let mut held = Self::default();
        held.add(bytes)?;
        Ok(held)
    }

    /// Counts memory that is added.
    ///
    /// # Errors
    /// `ExceededMemoryLimit` (146) if everything that expressions of the thread hold exceeds the limit of the call.
    #[inline]
    pub(crate) fn add(&mut self, bytes: usize) -> Result<()> {
        self.bytes += bytes;
        if self.bytes - self.counted < STEP { Ok(()) } else { self.count() }
    }

    #[cold]
    #[inline(never)]
    fn count(&mut self) -> Result<()> {
        let held = HELD.get() + (self.bytes - self.counted);
        if held > limit() {
            return Err(too_many());
        }
        self.counted = self.bytes;
        HELD.set(held);
        Ok(())
    }
}

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        if self.counted > 0 {
            HELD.set(HELD.get() - self.counted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_limited_until_it_is_dropped() {
        let limit = 4 << 20;
        within(Some(limit), || {
            let mut list = Held::default();
            for _ in 0..limit / 1024 {
                list.add(1024).unwrap();
            }
            assert_eq!(list.add(STEP).unwrap_err().code(), Code::EXCEEDED_MEMORY_LIMIT);
            assert!(Held::of(STEP).is_err());
            drop(list);
            drop(Held::of(limit).unwrap());
            assert_eq!(HELD.get(), 0);
            within(None, || assert!(Held::of(limit + 1).is_err(), "the limit of the outer call holds"));
            within(Some(0), || assert!(Held::of(LEAST_LIMIT).is_ok() && Held::of(LEAST_LIMIT + STEP).is_err()));
        });
        assert!(Held::of(DEFAULT_LIMIT).is_ok());
    }

    #[test]
    fn constants_are_counted_until_the_call_ends() {
        for _ in 0..2 {
            within(Some(LEAST_LIMIT), || {
                keep_constant(600_000).unwrap();
                // Stages that are parsed for one document after the other give theirs back.
                for _ in 0..3 {
                    within(None, || keep_constant(400_000)).unwrap();
                }
                assert_eq!(keep_constant(500_000).unwrap_err().code(), Code::EXCEEDED_MEMORY_LIMIT);
            });
        }
        keep_constant(usize::MAX / 2).unwrap();
    }
}
