//! Work inside one document, counted against the end of its call.
//!
//! A call checks its deadline and its cancel tokens between rows. One document can make more work than all rows together: a condition of thousands
//! of branches on an array of millions of elements, an array in an array in an array. Everything that loops over parts of a document, an operand or
//! a filter counts its steps here. Every `STEPS_PER_CHECK` steps the limits of the call are checked.
//!
//! ```text
//! slate-core    Interrupt::during(work)       the call begins to use its thread
//! here          during(limit, work)           the thread counts for this limit
//! evaluators    take(steps)?                  functions that can fail: expressions, updates, parsers
//!               spend(steps)                  conditions, which return `bool`
//! rows          take_copied(bytes)?           what holds, copies or spills rows and values, which can be large
//! ```
//!
//! What must stay true:
//!
//! - **A step takes about 20 ns, and no loop has more than a few hundred thousand steps between two counts.** Loops count before
//!   they begin, with the number of their elements or of the bytes that they read (`of_bytes`); a loop whose body counts for
//!   itself only has to end early.
//! - **Once a call is over it stays over**: deadlines do not move and cancelled tokens stay cancelled. A condition then returns any
//!   value at once, and [`during`] replaces the result of the call by the error, whatever it is. Nothing that was computed leaves the
//!   call: what writes calls [`complete`] between computing changes and applying them.
//! - **Counting is free for usual rows.** A count is a subtraction in a cell of the thread. Loops over a few fields, and lookups of
//!   single fields, do not count.
//!
//! In builds with debug assertions the lowest layer also counts what it does (`did`): elements read, values compared, bytes
//! written. Tests compare the two: between two checks there is never more than a bounded amount of real work ([`testing`]).

use std::{
    cell::{Cell, RefCell},
    cmp::Ordering,
    sync::Arc,
    time::Instant,
};

use crate::{Code, Error, Result};

/// A limit that can end a call early, such as a deadline or a cancel token.
pub trait Limit: Send + Sync {
    /// Fails if the call must end. Once it fails, it fails each time.
    ///
    /// # Errors
    /// The error with which the call ends.
    fn check(&self) -> Result<()>;

    /// Returns the time from which on the check fails; `None` if there is none. Work that cannot be interrupted is not begun if it would end later.
    fn deadline(&self) -> Option<Instant>;
}

/// The steps between two checks: about a third of a millisecond. A check reads the clock, which takes about as long as two steps.
const STEPS_PER_CHECK: usize = 1 << 14;

thread_local! {
    /// The steps left until the next check. 0 once the call is over.
    static LEFT: Cell<usize> = const { Cell::new(STEPS_PER_CHECK) };
    static IS_OVER: Cell<bool> = const { Cell::new(false) };
    /// The limits of the calls that use the thread, the innermost last: a call within an open transaction has two.
    static LIMITS: RefCell<Vec<Arc<dyn Limit>>> = const { RefCell::new(Vec::new()) };
}

/// Removes a limit at the end of its call.
struct Entered {
    outer: usize,
}

impl Entered {
    fn enter(limit: Arc<dyn Limit>) -> Self {
        LIMITS.with_borrow_mut(|limits| {
            limits.push(limit);
            Self { outer: limits.len() - 1 }
        })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        LIMITS.with_borrow_mut(|limits| limits.truncate(self.outer));
        if IS_OVER.get() {
            // The limits that remain may be exceeded, too.
            settle();
        }
    }
}

/// Calls `work`, whose steps on this thread count against the limit.
///
/// # Errors
/// The error of the limit, if the work was ended early; its result is not valid then.
pub fn during<R>(limit: Arc<dyn Limit>, work: impl FnOnce() -> R) -> Result<R> {
    let _entered = Entered::enter(limit);
    let result = work();
    check().map(|()| result)
}

/// Ends the limits of the calls that use the thread: what they have computed is about to be applied, and they must not fail after that.
///
/// # Errors
/// As [`check`].
pub fn complete() -> Result<()> {
    check()?;
    LIMITS.with_borrow_mut(Vec::clear);
    Ok(())
}

/// The limits of the calls that use the thread, set again when it is dropped.
struct Suspended {
    limits: Vec<Arc<dyn Limit>>,
    was_over: bool,
}

impl Drop for Suspended {
    fn drop(&mut self) {
        LIMITS.set(std::mem::take(&mut self.limits));
        if self.was_over {
            settle();
        }
    }
}

/// Calls `work` without limits, even if the call is over.
pub fn undivided<R>(work: impl FnOnce() -> R) -> R {
    let _suspended = Suspended { limits: LIMITS.take(), was_over: IS_OVER.get() };
    if IS_OVER.get() {
        settle();
    }
    work()
}

/// Restarts the count of steps until the next check, for a call that may only do a few steps.
pub fn restart() {
    if !IS_OVER.get() {
        LEFT.set(STEPS_PER_CHECK);
    }
}

/// Fails if the call was ended early, so that values computed so far are not valid. Costs a load.
///
/// # Errors
/// The error of the limit.
#[inline]
pub fn check() -> Result<()> {
    if is_over() { Err(ended()) } else { Ok(()) }
}

/// Returns whether the call was ended early.
#[inline]
pub(crate) fn is_over() -> bool {
    LEFT.get() == 0 && IS_OVER.get()
}

/// Counts steps. Returns `false` if the call is over: the caller then returns any value at once.
#[inline]
pub(crate) fn spend(steps: usize) -> bool {
    #[cfg(debug_assertions)]
    testing::counted(steps);
    match LEFT.get().checked_sub(steps) {
        Some(left) => {
            LEFT.set(left);
            true
        }
        None => ask(),
    }
}

/// Counts steps.
///
/// # Errors
/// The error of the limit, if the call is over.
#[inline]
pub fn take(steps: usize) -> Result<()> {
    if spend(steps) { Ok(()) } else { Err(ended()) }
}

/// Returns the number of steps for reading this number of bytes of a document: one for 16 bytes.
#[inline]
pub(crate) fn of_bytes(bytes: usize) -> usize {
    bytes / 16
}

/// The steps of parsing a part of an argument, such as a path or an expression: mostly allocations.
pub(crate) const PARSED: usize = 16;

/// Rows of this many bytes and fewer are counted as rows alone: copying one takes less than a microsecond.
const USUAL_ROW: usize = 1 << 12;

/// Counts the bytes of a row that is copied, in memory or to a file, if it has more than [`USUAL_ROW`]. Returns `false` if the call is over.
#[inline]
pub(crate) fn spend_copied(bytes: usize) -> bool {
    bytes <= USUAL_ROW || spend(bytes / 64)
}

/// Counts a row that is copied, in memory or to a file.
///
/// # Errors
/// As [`take`].
#[inline]
pub fn take_copied(bytes: usize) -> Result<()> {
    if spend_copied(bytes) { Ok(()) } else { Err(ended()) }
}

/// Checks the limits of the calls of the thread. Returns false if a call must end.
#[cold]
#[inline(never)]
fn ask() -> bool {
    #[cfg(debug_assertions)]
    testing::checked();
    if IS_OVER.get() {
        return false;
    }
    settle()
}

/// Checks the limits and restarts the count of steps. Returns whether the calls of the thread may continue.
fn settle() -> bool {
    let is_over = first_error().is_some();
    IS_OVER.set(is_over);
    LEFT.set(if is_over { 0 } else { STEPS_PER_CHECK });
    !is_over
}

fn first_error() -> Option<Error> {
    // A limit calls nothing that counts.
    LIMITS.with_borrow(|limits| limits.iter().rev().find_map(|limit| limit.check().err()))
}

#[cold]
fn ended() -> Error {
    first_error().unwrap_or_else(|| Error::new(Code::MAX_TIME_MS_EXPIRED, "the operation exceeded its time limit"))
}

/// Returns the earliest deadline of the calls of the thread, if there is one.
pub(crate) fn deadline() -> Option<Instant> {
    LIMITS.with_borrow(|limits| limits.iter().filter_map(|limit| limit.deadline()).min())
}

/// The steps of moving a value while sorting, with its comparison.
const SORTED: usize = 4;

/// The number of values that are sorted by moving each to its place. Longer lists are merged from such runs.
const RUN: usize = 16;

/// Sorts stably and counts the steps. If the call is over, the order is any.
///
/// Unlike the sort of the standard library it never panics, whatever `compare` returns: a comparison of a call that ends while it
/// sorts can contradict an earlier one.
pub(crate) fn sort_by<T>(values: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    if values.len() <= RUN {
        spend(values.len());
        return sort_run(values, |a, b| compare(a, b).is_gt());
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    let is_after = |a: usize, b: usize| values.get(a).zip(values.get(b)).is_some_and(|(a, b)| compare(a, b).is_gt());
    for run in order.chunks_mut(RUN) {
        if !spend(RUN * SORTED) {
            return;
        }
        sort_run(run, |&a, &b| is_after(a, b));
    }
    let (mut merged, mut length) = (Vec::with_capacity(order.len()), RUN);
    while length < order.len() {
        for runs in order.chunks(length.saturating_mul(2)) {
            let (mut left, mut right) = runs.split_at(length.min(runs.len()));
            while let (Some((&first, others)), Some((&second, rest))) = (left.split_first(), right.split_first()) {
                if !spend(SORTED) {
                    return;
                }
                if is_after(first, second) {
                    merged.push(second);
                    right = rest;
                } else {
                    merged.push(first);
                    left = others;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(&mut order, &mut merged);
        merged.clear();
        length = length.saturating_mul(2);
    }
    arrange(values, &mut order);
}

/// Sorts a short list stably.
fn sort_run<T>(run: &mut [T], is_after: impl Fn(&T, &T) -> bool) {
    for end in 1..run.len() {
        for at in (1..=end).rev() {
            match run.get(at - 1..=at) {
                Some([before, value]) if is_after(before, value) => run.swap(at - 1, at),
                _ => break,
            }
        }
    }
}

/// Moves each value to its place: to place `n` the value that was at `order[n]`.
fn arrange<T>(values: &mut [T], order: &mut [usize]) {
    for start in 0..order.len() {
        let mut at = start;
        // Each value of a cycle moves one place on; a place that is done refers to itself.
        while let Some(from) = order.get_mut(at).map(|place| std::mem::replace(place, at)).filter(|from| *from != start)
        {
            values.swap(at, from);
            at = from;
        }
    }
}

/// Records work of the lowest layer in a build with debug assertions: elements that are read, values that are compared.
#[inline(always)]
pub(crate) fn did(_work: usize) {
    #[cfg(debug_assertions)]
    testing::did(_work);
}

/// Counts of real work, in total and between two checks. Only in builds with debug assertions; not part of the API.
#[cfg(debug_assertions)]
#[doc(hidden)]
pub mod testing {
    use std::cell::Cell;

    thread_local! {
        static DONE: Cell<usize> = const { Cell::new(0) };
        static MOST: Cell<usize> = const { Cell::new(0) };
        static TOTAL: Cell<Total> = const { Cell::new(Total { work: 0, steps: 0 }) };
    }

    /// The work of this thread.
    #[derive(Clone, Copy, Debug)]
    pub struct Total {
        /// Elements read, values compared, bytes written.
        pub work: usize,
        /// The steps that were counted for it.
        pub steps: usize,
    }

    #[inline]
    pub(super) fn did(work: usize) {
        DONE.set(DONE.get().wrapping_add(work));
        let Total { work: before, steps } = TOTAL.get();
        TOTAL.set(Total { work: before.wrapping_add(work), steps });
    }

    #[inline]
    pub(super) fn counted(steps: usize) {
        let Total { work, steps: before } = TOTAL.get();
        TOTAL.set(Total { work, steps: before.wrapping_add(steps) });
    }

    /// Calls `work`, and returns its result and what this thread has done meanwhile.
    pub fn total<R>(work: impl FnOnce() -> R) -> (R, Total) {
        TOTAL.set(Total { work: 0, steps: 0 });
        let result = work();
        (result, TOTAL.get())
    }

    pub(super) fn checked() {
        MOST.set(MOST.get().max(DONE.take()));
    }

    /// Calls `work`, and returns its result and the most work between two checks, the beginning and the end included.
    pub fn most_unchecked<R>(work: impl FnOnce() -> R) -> (R, usize) {
        DONE.set(0);
        MOST.set(0);
        let result = work();
        checked();
        (result, MOST.get())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    /// Allows a number of checks.
    pub(crate) struct Checks(pub(crate) AtomicUsize);

    impl Limit for Checks {
        fn check(&self) -> Result<()> {
            let left = self.0.load(Relaxed);
            self.0.store(left.saturating_sub(1), Relaxed);
            if left > 0 { Ok(()) } else { Err(Error::new(Code::INTERRUPTED, "no checks left")) }
        }

        fn deadline(&self) -> Option<Instant> {
            None
        }
    }

    fn checks(number: usize) -> Arc<dyn Limit> {
        Arc::new(Checks(AtomicUsize::new(number)))
    }

    #[test]
    fn a_call_that_is_over_stays_over_until_its_end() {
        let ended = during(checks(2), || {
            let mut steps = 0;
            while spend(1) {
                steps += 1;
            }
            assert!((STEPS_PER_CHECK..=4 * STEPS_PER_CHECK).contains(&steps), "{steps}");
            assert!(is_over() && !spend(1) && take(1).is_err() && check().is_err());
        });
        assert_eq!(ended.unwrap_err().code(), Code::INTERRUPTED);
        assert!(!is_over() && spend(1) && check().is_ok());
    }

    #[test]
    fn the_limits_of_a_call_and_of_its_transaction_hold() {
        let inner_ends = during(checks(100), || {
            let inner = during(checks(0), || while spend(1) {});
            assert!(inner.is_err() && !is_over() && take(1).is_ok());
        });
        assert!(inner_ends.is_ok());
        let outer_ends = during(checks(0), || during(checks(100), || while spend(1) {}));
        assert!(outer_ends.is_err());
    }

    #[test]
    fn undivided_work_is_not_ended() {
        let ended = during(checks(1), || {
            undivided(|| assert!((0..5).all(|_| spend(STEPS_PER_CHECK)), "no limit ends it"));
            assert!(check().is_ok(), "and its steps check no limit");
            while spend(1) {}
            undivided(|| assert!(check().is_ok() && spend(STEPS_PER_CHECK), "nor is work after the end"));
            assert!(is_over() && check().is_err());
        });
        assert_eq!(ended.unwrap_err().code(), Code::INTERRUPTED);
    }

    #[test]
    fn a_sort_is_stable_counts_and_never_panics() {
        let random = |at: usize| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        for length in [0, 1, RUN, RUN + 1, 300, 20_007] {
            let mut values: Vec<(usize, usize)> = (0..length).map(|at| (random(at) % 1000, at)).collect();
            let mut expected = values.clone();
            expected.sort();
            sort_by(&mut values, |(a, _), (b, _)| a.cmp(b));
            assert!(values == expected, "{length}");
            // Any answers, and answers that change in between: the values stay, in any order.
            let answers = AtomicUsize::new(0);
            for changes in [false, true] {
                sort_by(&mut values, |(a, _), (b, _)| {
                    let answer = random(answers.fetch_add(1, Relaxed));
                    if changes && answers.load(Relaxed) < length { a.cmp(b) } else { (answer % 3).cmp(&1) }
                });
            }
            values.sort();
            assert!(values == expected, "{length}");
        }
        let ended = during(checks(1), || {
            let mut values: Vec<usize> = (0..400_000).map(random).collect();
            sort_by(&mut values, usize::cmp);
            values.len()
        });
        assert!(ended.is_err());
    }
}
