//! An operation repeated, and timed each time.

use std::time::{Duration, Instant};

use crate::{Allocations, Result, Samples};

/// What a time is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// What passed.
    #[default]
    Wall,
    /// What passed, without the time in which this thread could have run, but other threads had its core: on a machine that
    /// does other work besides, times an operation as if it did not. Waiting for a device counts. So does what other
    /// threads of the database's own took, only if they did not take it from this one: for a database that works in the
    /// background, on a single core, this clock flatters. Linux alone tells it.
    Running,
}

impl Clock {
    /// Whether this system has it.
    pub fn is_there(self) -> bool {
        self == Self::Wall || waited().is_some()
    }

    /// Runs it, and tells how long it took.
    pub fn timed<R>(self, operation: impl FnOnce() -> R) -> (R, Duration) {
        if self == Self::Wall {
            return timed(operation);
        }
        let begin = Instant::now();
        let before = waited();
        let (result, passed) = timed(operation);
        let waited = waited().zip(before).map_or(Duration::ZERO, |(after, before)| after.saturating_sub(before));
        // A wait may lie between the statistics and the operation: it is taken from what passed around both, which is never
        // too little, and only where there was one.
        (result, passed.min(begin.elapsed().saturating_sub(waited)))
    }
}

/// How long this thread ever waited for a core: the second number of its scheduling statistics.
fn waited() -> Option<Duration> {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(statistics.split_whitespace().nth(1)?.parse().ok()?))
}

/// How often an operation is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// At least so often, unless that takes longer than `longest`.
    pub runs: u32,
    /// An operation that is over sooner is repeated until so much time was measured, up to 20 times `runs`.
    pub shortest: Duration,
    /// Past so much measured time no run is begun, once there are five.
    pub longest: Duration,
    /// By which clock.
    pub clock: Clock,
}

impl Repeat {
    /// At least so often; by the clock on the wall; at least 4 ms for each, and 5 s at most.
    pub fn times(runs: u32) -> Self {
        let runs = runs.max(1);
        let shortest = Duration::from_millis(4) * runs;
        Self { runs, shortest, longest: Duration::from_secs(5), clock: Clock::Wall }
    }

    /// Whether, after these, another is to follow.
    pub fn goes_on(&self, samples: &Samples) -> bool {
        const FEWEST: u32 = 5;
        let (done, spent) = (u32::try_from(samples.len()).unwrap_or(u32::MAX), samples.total());
        if done < self.runs {
            return done < FEWEST.min(self.runs) || spent < self.longest;
        }
        spent < self.shortest && done < self.runs.saturating_mul(20)
    }

    /// Times `operation`, after one run that is not counted. Before each run `set_up` makes what it works on, and after
    /// it `check` takes what it gave: neither is timed.
    ///
    /// # Errors
    /// The first of any of the three.
    pub fn time<I, O>(
        &self,
        mut set_up: impl FnMut() -> Result<I>,
        mut operation: impl FnMut(I) -> Result<O>,
        mut check: impl FnMut(O) -> Result<()>,
    ) -> Result<Samples> {
        let input = set_up()?;
        check(operation(input)?)?;
        let mut samples = Samples::default();
        while self.goes_on(&samples) {
            let input = set_up()?;
            let (output, time) = self.clock.timed(|| operation(input));
            samples.push(time);
            check(output?)?;
        }
        Ok(samples)
    }
}

/// Runs it, and tells how long it took.
pub fn timed<R>(operation: impl FnOnce() -> R) -> (R, Duration) {
    let begin = Instant::now();
    let result = std::hint::black_box(operation());
    (result, begin.elapsed())
}

/// Runs it, and tells what this thread allocated meanwhile, where that is counted.
///
/// # Errors
/// Those of the operation.
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
        assert!(repeat.goes_on(&samples(9, Duration::from_millis(20))));
        assert!(!repeat.goes_on(&samples(10, Duration::from_millis(20))));
        assert!(repeat.goes_on(&samples(10, Duration::from_millis(1))));
        assert!(!repeat.goes_on(&samples(40, Duration::from_millis(1))));
        assert!(!repeat.goes_on(&samples(200, Duration::from_nanos(1))));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn waiting_for_a_device_counts_and_waiting_for_a_core_does_not() {
        let pause = Duration::from_millis(20);
        if Clock::Running.is_there() {
            assert!(Clock::Running.timed(|| std::thread::sleep(pause)).1 > pause / 2);
        }
        // Threads that keep this one's core busy.
        let Some(core) = crate::pin::cores().into_iter().next() else { return };
        std::thread::spawn(move || {
            if !crate::pin::to_core(core) || !Clock::Running.is_there() {
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
    fn a_long_operation_is_run_five_times_and_no_more_than_it_was_asked_to() {
        assert!(Repeat::times(10).goes_on(&samples(4, Duration::from_secs(9))));
        assert!(!Repeat::times(10).goes_on(&samples(5, Duration::from_secs(9))));
        assert!(!Repeat::times(2).goes_on(&samples(2, Duration::from_secs(9))));
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
