//! Runs an operation repeatedly and measures each run.

use std::time::{Duration, Instant};

use crate::{Allocations, Result, Samples};

/// The clock of a measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// Wall time.
    #[default]
    Wall,
    /// Wall time minus the time in which this thread was ready to run but other threads used its core. On a machine
    /// that does other work, this approximates an idle machine. Waiting for a device is included. Time of the
    /// database's background threads is included only if they run on other cores, so on a single core this clock favors
    /// databases with background threads. Available on Linux only.
    Running,
}

impl Clock {
    /// Returns whether this system has the clock.
    pub fn is_available(self) -> bool {
        self == Self::Wall || waited().is_some()
    }

    /// Runs a closure and returns its time.
    pub fn timed<R>(self, operation: impl FnOnce() -> R) -> (R, Duration) {
        if self == Self::Wall {
            return timed(operation);
        }
        let begin = Instant::now();
        let before = waited();
        let (result, passed) = timed(operation);
        let waited = waited().zip(before).map_or(Duration::ZERO, |(after, before)| after.saturating_sub(before));
        // A wait can happen between reading the statistics and starting the operation. Subtracting the wait from the
        // time around both readings is never too little, and is done only if there was a wait.
        (result, passed.min(begin.elapsed().saturating_sub(waited)))
    }
}

/// Returns how long this thread has waited for a core: the second number in its scheduling statistics.
fn waited() -> Option<Duration> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(statistics.split_whitespace().nth(1)?.parse().ok()?))
}

/// How often an operation is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Minimum number of runs, unless `longest` is exceeded.
    pub runs: u32,
    /// Short operations are repeated until this much time was measured, up to 20 times `runs`.
    pub shortest: Duration,
    /// After this much measured time no further run starts, if there were at least five.
    pub longest: Duration,
    /// The clock.
    pub clock: Clock,
}

impl Repeat {
    /// Uses the wall clock and this many runs: measures at least 4 ms per run, and at most 5 s in total.
    pub fn times(runs: u32) -> Self {
        let runs = runs.max(1);
        let shortest = Duration::from_millis(4) * runs;
        Self { runs, shortest, longest: Duration::from_secs(5), clock: Clock::Wall }
    }

    /// Returns whether another run follows.
    pub fn needs_another_run(&self, samples: &Samples) -> bool {
        const FEWEST: u32 = 5;
        let (done, spent) = (u32::try_from(samples.len()).unwrap_or(u32::MAX), samples.total());
        if done < self.runs {
            return done < FEWEST.min(self.runs) || spent < self.longest;
        }
        spent < self.shortest && done < self.runs.saturating_mul(20)
    }

    /// Measures `operation` after a warm-up run. Before each run `set_up` creates its input, and after each run `check`
    /// receives its output; neither is measured.
    ///
    /// # Errors
    /// Fails with the first error of the three closures.
    pub fn time<I, O>(
        &self,
        mut set_up: impl FnMut() -> Result<I>,
        mut operation: impl FnMut(I) -> Result<O>,
        mut check: impl FnMut(O) -> Result<()>,
    ) -> Result<Samples> {
        let input = set_up()?;
        check(operation(input)?)?;
        let mut samples = Samples::default();
        while self.needs_another_run(&samples) {
            let input = set_up()?;
            let (output, time) = self.clock.timed(|| operation(input));
            samples.push(time);
            check(output?)?;
        }
        Ok(samples)
    }
}

/// Runs a closure and returns its result and time.
pub fn timed<R>(operation: impl FnOnce() -> R) -> (R, Duration) {
    let begin = Instant::now();
    let result = std::hint::black_box(operation());
    (result, begin.elapsed())
}

/// Runs a closure and returns its result and what this thread allocated, if the feature is on.
///
/// # Errors
/// Fails with the operation's error.
pub fn allocating<R>(operation: impl FnOnce() -> Result<R>) -> Result<(R, Option<Allocations>)> {
    let (result, allocations) = Allocations::during(operation);
    Ok((result?, allocations))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(many: usize, each: Duration) -> Samples {
        std::iter::repeat_n(each, many).collect()
    }

    #[test]
    fn a_short_operation_is_repeated_until_it_took_its_time() {
        let repeat = Repeat::times(10);
        assert!(repeat.needs_another_run(&samples(9, Duration::from_millis(20))));
        assert!(!repeat.needs_another_run(&samples(10, Duration::from_millis(20))));
        assert!(repeat.needs_another_run(&samples(10, Duration::from_millis(1))));
        assert!(!repeat.needs_another_run(&samples(40, Duration::from_millis(1))));
        assert!(!repeat.needs_another_run(&samples(200, Duration::from_nanos(1))));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn waiting_for_a_device_counts_and_waiting_for_a_core_does_not() {
        let pause = Duration::from_millis(20);
        if Clock::Running.is_available() {
            assert!(Clock::Running.timed(|| std::thread::sleep(pause)).1 > pause / 2);
        }
        // Threads that compete for this thread's core.
        let Some(core) = crate::pin::cores().into_iter().next() else { return };
        std::thread::spawn(move || {
            if !crate::pin::to_core(core) || !Clock::Running.is_available() {
                return;
            }
            let end = Instant::now() + Duration::from_millis(300);
            let busy: Vec<_> = (0..3).map(|_| std::thread::spawn(move || while Instant::now() < end {})).collect();
            let mut passed = Duration::ZERO;
            let ((), ran) = Clock::Running.timed(|| {
                let begin = Instant::now();
                while begin.elapsed() < Duration::from_millis(100) {}
                passed = begin.elapsed();
            });
            busy.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(ran < passed * 3 / 4, "{ran:?} of {passed:?}");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_long_operation_runs_five_times_and_not_more_than_requested() {
        assert!(Repeat::times(10).needs_another_run(&samples(4, Duration::from_secs(9))));
        assert!(!Repeat::times(10).needs_another_run(&samples(5, Duration::from_secs(9))));
        assert!(!Repeat::times(2).needs_another_run(&samples(2, Duration::from_secs(9))));
    }

    #[test]
    fn the_first_run_is_not_counted() {
        let mut runs = 0;
        let repeat = Repeat { shortest: Duration::ZERO, ..Repeat::times(3) };
        let samples = repeat.time(
            || Ok(()),
            |()| {
                runs += 1;
                Ok(())
            },
            Ok,
        );
        assert_eq!((samples.unwrap().len(), runs), (3, 4));
    }

    #[test]
    fn a_wrong_result_ends_it() {
        let result = Repeat::times(3).time(|| Ok(1), Ok, |_| Err("wrong".into()));
        assert_eq!(result.unwrap_err().to_string(), "wrong");
    }
}
