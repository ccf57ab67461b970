use std::{
    fmt,
    sync::OnceLock,
    time::{Duration, Instant},
};

use fancy_regex::{CompileError, Error as EngineError, Regex, RegexBuilder, RuntimeError};

use super::{Matched, failure, invalid, scope::Growth, too_expensive};
use crate::{Result, work};

/// A pattern that needs backtracking.
pub(super) struct Backtracking {
    /// The pattern in the engine's notation.
    text: Box<str>,
    growth: Growth,
    /// At position n, the compiled pattern with a limit of 4^n backtracking steps.
    compiled: [OnceLock<Regex>; MOST_STEPS + 1],
}

/// The exponent of the limit with which a pattern is compiled to find its errors.
const USUAL_STEPS: usize = 8;

/// Maximum work of a first try, in steps times characters that a step can read: a tenth of a second or less. Longer texts start with a lower limit.
/// A text of which a match from a single start could read more characters is refused.
const MOST_WORK: u64 = 1 << 26;

/// The most work of a first try before a deadline: a hundredth of a second. The time of a try is known only after it.
const MOST_WORK_IN_TIME: u64 = 1 << 22;

/// The assumed ratio of the times of a try and the one before, to decide whether it would exceed the deadline. A limit is four times the one before,
/// and the steps of a pattern can differ in length.
const CAUTION: u32 = 8;

/// The exponent of the last limit, about a million steps, for texts up to 64 KiB. Patterns that do not multiply the number
/// of steps take a few for each character.
const LAST_STEPS: usize = 10;

/// The exponent of the last limit for longer texts.
const MOST_STEPS: usize = 12;

/// Texts up to this length in bytes have the last limit [`LAST_STEPS`].
const LONG: usize = 1 << 16;

/// A match that has exceeded a limit after this time is not tried with a higher one.
const PATIENCE: Duration = Duration::from_secs(4);

/// The largest compiled part of a pattern in bytes.
const MAX_PART: usize = 1 << 20;

/// The largest program in instructions.
const MAX_INSTRUCTIONS: usize = 1 << 15;

impl Backtracking {
    /// Compiles a pattern in the engine's notation.
    ///
    /// # Errors
    /// 51091 for a pattern that does not compile.
    pub(super) fn new(text: &str, growth: Growth) -> Result<Self> {
        let new = Self { text: text.into(), growth, compiled: Default::default() };
        new.with_limit(USUAL_STEPS)?;
        Ok(new)
    }

    /// Returns the pattern, compiled with a limit of 4^`exponent` backtracking steps.
    fn with_limit(&self, exponent: usize) -> Result<&Regex> {
        let compiled = self.compiled.get(exponent).ok_or_else(too_expensive)?;
        if let Some(compiled) = compiled.get() {
            return Ok(compiled);
        }
        let new = RegexBuilder::new(&self.text)
            .backtrack_limit(1 << (2 * exponent))
            .max_prog_size(MAX_INSTRUCTIONS)
            .delegate_size_limit(MAX_PART)
            .delegate_dfa_size_limit(MAX_PART)
            .build()
            .map_err(|error| invalid(&reason(&error)))?;
        Ok(compiled.get_or_init(|| new))
    }

    /// Returns the exponents of the first and the last limit for a text.
    ///
    /// # Errors
    /// 51156 if the engine could read the text too often without backtracking, because it counts only backtracking steps.
    fn limits(&self, length: usize) -> Result<(usize, usize)> {
        let last = if length <= LONG { LAST_STEPS } else { MOST_STEPS };
        let reads = self.growth.work(length);
        if self.growth > Growth::LINEAR && reads > MOST_WORK {
            return Err(too_expensive());
        }
        let most = if work::deadline().is_some() { MOST_WORK_IN_TIME } else { MOST_WORK };
        let fits = |exponent: &usize| reads.saturating_mul(1 << (2 * exponent)) <= most;
        Ok(((0..=LAST_STEPS).rev().find(fits).unwrap_or(0), last))
    }

    /// Matches with a low limit first and with higher ones after that, as long as it is fast.
    ///
    /// The engine counts only backtracking steps, and how long they take depends on the pattern: the time of a failed try says whether a higher
    /// limit is affordable.
    fn within_limits<T>(&self, length: usize, run: impl Fn(&Regex) -> fancy_regex::Result<T>) -> Result<T> {
        let deadline = work::deadline();
        let (first, last) = self.limits(length)?;
        let start = Instant::now();
        if deadline.is_some_and(|deadline| start >= deadline) {
            return Err(failure::past_deadline());
        }
        for exponent in first..=last {
            let regex = self.with_limit(exponent)?;
            let begin = Instant::now();
            match run(regex) {
                Ok(result) => return Ok(result),
                Err(EngineError::RuntimeError(RuntimeError::BacktrackLimitExceeded)) if exponent < last => {}
                Err(_) => break,
            }
            if start.elapsed() > PATIENCE {
                break;
            }
            if deadline.is_some_and(|deadline| Instant::now() + begin.elapsed() * CAUTION > deadline) {
                return Err(failure::past_deadline());
            }
        }
        Err(too_expensive())
    }

    /// Returns whether the pattern matches. Fails with 51156 if that takes too many steps, with 50 if it would take longer than the
    /// [deadline](work::deadline).
    pub(super) fn is_match(&self, text: &str) -> Result<bool> {
        self.within_limits(text.len(), |regex| regex.is_match(text))
    }

    /// Returns the positions of the first match that starts at `from` or later, and of its groups; `None` if there is no match.
    ///
    /// # Errors
    /// As [`is_match`](Self::is_match).
    pub(super) fn find(&self, text: &str, from: usize) -> Result<Option<Matched>> {
        let found = self.within_limits(text.len(), |regex| regex.captures_from_pos(text, from))?;
        Ok(found.map(|found| found.iter().map(|group| group.map(|group| group.range())).collect()))
    }
}

impl fmt::Debug for Backtracking {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Backtracking").field(&self.text).finish()
    }
}

/// Returns why a pattern does not compile, without the engine's notation of it, which the caller never saw.
fn reason(error: &EngineError) -> String {
    match error {
        EngineError::CompileError(error) => match &**error {
            CompileError::PatternTooComplex => "regular expression is too large".to_owned(),
            CompileError::InnerError(error) if error.size_limit().is_some() => {
                "regular expression is too large".to_owned()
            }
            CompileError::InnerError(error) => {
                error.syntax_error().map_or_else(|| error.to_string(), |error| super::last_line(&error.to_string()))
            }
            other => other.to_string(),
        },
        EngineError::ParseError(_, error) => error.to_string(),
        other => other.to_string(),
    }
}
