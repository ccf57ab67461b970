//! Regular expressions in PCRE's notation.
//!
//! Most patterns run on an engine whose time is linear in the text. Those with lookaround, back-references, atomic or
//! conditional groups, possessive quantifiers, `\K` or `\X` run on one that backtracks, with a limit on its steps. Other
//! differences in notation are translated. Constructs that neither engine has fail with the code of an invalid expression
//! and a message that names the construct.

mod backtracking;
mod class;
mod escape;
pub(crate) mod failure;
mod grapheme;
mod group;
mod input;
mod prefix;
mod reference;
mod scope;
mod translate;

use std::{ops::Range, sync::Arc};

use backtracking::Backtracking;
pub(crate) use prefix::{Decides, Prefix};
use regex_automata::{
    Input,
    meta::{self, BuildError, Regex},
    util::syntax,
};
use translate::Engine;

use crate::{
    Code, Error, Result, held,
    raw::{Kind, OwnedValue, Value},
    work,
};

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// The pattern and its options as written.
    value: OwnedValue,
    compiled: Compiled,
    prefix: Option<Prefix>,
}

#[derive(Clone, Debug)]
enum Compiled {
    Linear(Regex),
    Backtracking(Arc<Backtracking>),
}

/// What a pattern is compiled for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Whether a text matches.
    Test,
    /// Where a text matches.
    Search,
}

/// The positions of a match and of its groups in a text.
pub(crate) type Matched = Vec<Option<Range<usize>>>;

/// Maximum size of a pattern, in bytes. MongoDB accepts 32,764 bytes, but PCRE compiles only half as many ordinary characters.
const MAX_LENGTH: usize = 16_384;

/// The largest compiled program in bytes. Counted repetitions multiply its size.
const MAX_PROGRAM: usize = 4 << 20;

/// The bytes of a compiled program that count as one step of work.
const BYTES_PER_STEP: usize = 64;

/// Approximate bytes that a compiled backtracking program takes for each byte of its pattern.
const BACKTRACKING: usize = 1 << 10;

/// Bytes that the linear engine takes for each pattern beyond the memory usage that it reports: its settings and the properties of the pattern.
const LINEAR: usize = 3 << 10;

/// The steps of compiling the shortest pattern: some ten microseconds.
const COMPILED: usize = 1 << 10;

impl Pattern {
    /// Compiles a pattern with its options, to test texts, and counts its memory.
    ///
    /// # Errors
    /// `BadValue` (2) for a pattern that contains a NUL; 51108 for an unknown option; 51091 for a pattern that does not
    /// compile; `ExceededMemoryLimit` (146) if all that a call compiles takes more than its limit.
    pub(crate) fn new(source: &[u8], options: &[u8]) -> Result<Self> {
        let (pattern, bytes) = Self::compile(source, options, Use::Test)?;
        held::keep_constant(bytes)?;
        Ok(pattern)
    }

    /// Compiles a pattern with its options, for one evaluation.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub(crate) fn for_use(source: &[u8], options: &[u8], wanted: Use) -> Result<Self> {
        Self::compile(source, options, wanted).map(|(pattern, _)| pattern)
    }

    /// Compiles a pattern. Returns it and its memory in bytes.
    fn compile(source: &[u8], options: &[u8], wanted: Use) -> Result<(Self, usize)> {
        if source.contains(&0) {
            return Err(Error::new(Code::BAD_VALUE, "Regular expression cannot contain an embedded null byte"));
        }
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| invalid("it is not UTF-8"));
        let (text, flags) = (text(source)?, text(options)?);
        if let Some(flag) = flags.chars().find(|flag| !"imsux".contains(*flag)) {
            return Err(Error::new(Code(51108), format!("invalid flag in regex options: {flag}")));
        }
        if text.len() > MAX_LENGTH {
            return Err(invalid("regular expression is too large"));
        }
        work::take(COMPILED + text.len() * work::PARSED)?;
        let translated = translate::translate(text, flags, wanted)?;
        let (compiled, bytes) = match translated.engine {
            Engine::Linear => {
                let regex = linear(&translated.text)?;
                let bytes = regex.memory_usage();
                work::take(bytes / BYTES_PER_STEP)?;
                (Compiled::Linear(regex), bytes + LINEAR)
            }
            Engine::Backtracking => {
                let compiled = Backtracking::new(&translated.text, translated.growth)?;
                (Compiled::Backtracking(Arc::new(compiled)), text.len().saturating_mul(BACKTRACKING).min(MAX_PROGRAM))
            }
        };
        Ok((Self { value: to_value(source, options), compiled, prefix: translated.prefix }, bytes))
    }

    /// Compiles a BSON regular expression.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub(crate) fn of_value(value: Value<'_>) -> Result<Self> {
        let (source, options) = value.as_regex().unwrap_or_default();
        Self::new(source, options)
    }

    /// Returns whether the value is a string that the pattern matches, or the same regular expression.
    #[inline]
    pub(super) fn matches(&self, value: Value<'_>) -> bool {
        if matches!(value.kind(), Kind::String | Kind::Symbol) {
            value.text().is_some_and(|text| self.holds(text))
        } else {
            value == self.value.as_value()
        }
    }

    /// Returns whether the pattern matches the text. If the match [can fail](Self::can_fail), the caller must be within
    /// [`failure::watch`].
    #[inline]
    pub(crate) fn holds(&self, text: &[u8]) -> bool {
        if !work::spend(work::of_bytes(text.len())) {
            return false;
        }
        match &self.compiled {
            Compiled::Linear(regex) => regex.is_match(text),
            Compiled::Backtracking(_) => failure::noted(|| self.is_match(text)),
        }
    }

    /// Returns whether the pattern needs backtracking, so that a match can take too many steps.
    pub(crate) fn can_fail(&self) -> bool {
        matches!(self.compiled, Compiled::Backtracking(_))
    }

    /// Returns whether the pattern matches the text.
    ///
    /// # Errors
    /// 51156 if the match takes too many steps; 50 if it would take longer than the deadline.
    pub(crate) fn is_match(&self, text: &[u8]) -> Result<bool> {
        match &self.compiled {
            Compiled::Linear(regex) => Ok(regex.is_match(text)),
            Compiled::Backtracking(backtracking) => backtracking.is_match(&String::from_utf8_lossy(text)),
        }
    }

    /// Returns the first match that starts at `from` or later; `None` if there is none.
    ///
    /// # Errors
    /// 51156 if the match takes too many steps; 50 if it would take longer than the deadline.
    pub(crate) fn find(&self, text: &str, from: usize) -> Result<Option<Matched>> {
        work::take(1)?;
        match &self.compiled {
            Compiled::Linear(regex) => {
                let mut found = regex.create_captures();
                regex.search_captures(&Input::new(text.as_bytes()).span(from..text.len()), &mut found);
                Ok(found.is_match().then(|| found.iter().map(|group| group.map(|group| group.range())).collect()))
            }
            Compiled::Backtracking(backtracking) => backtracking.find(text, from),
        }
    }

    /// Returns the pattern as written.
    pub(crate) fn source(&self) -> &str {
        let (source, _) = self.value.as_value().as_regex().unwrap_or_default();
        std::str::from_utf8(source).unwrap_or_default()
    }

    /// Returns the prefix of every string that matches, if one is known.
    pub(super) fn prefix(&self) -> Option<&Prefix> {
        self.prefix.as_ref()
    }

    /// Returns the BSON regular expression.
    pub(super) fn to_value(&self) -> &OwnedValue {
        &self.value
    }
}

fn to_value(source: &[u8], options: &[u8]) -> OwnedValue {
    let bytes = [source, &[0], options, &[0]].concat();
    Value::new(Kind::Regex, &bytes).to_owned()
}

/// Returns the error for an expression that does not compile.
fn invalid(why: &str) -> Error {
    Error::new(Code(51091), format!("Regular expression is invalid: {why}"))
}

/// Returns the error for a construct of PCRE that no engine has.
fn needs_pcre(construct: &str) -> Error {
    invalid(&format!("{construct} is not supported"))
}

/// Returns the error of a match that is given up. MongoDB has the code for expressions whose match fails.
fn too_expensive() -> Error {
    let message = "Error occurred while executing the regular expression: the match takes too many backtracking steps";
    Error::new(Code(51156), message)
}

/// Compiles a pattern for the engine that needs linear time.
fn linear(text: &str) -> Result<Regex> {
    let config =
        meta::Config::new().utf8_empty(false).nfa_size_limit(Some(MAX_PROGRAM)).hybrid_cache_capacity(MAX_PROGRAM);
    let built = meta::Builder::new().configure(config).syntax(syntax::Config::new().utf8(false)).build(text);
    built.map_err(|error| invalid(&reason(&error)))
}

/// Returns the engine's message on one line. It may refer to the translated pattern, which the caller never saw.
fn reason(error: &BuildError) -> String {
    match error.syntax_error() {
        Some(syntax) => last_line(&syntax.to_string()),
        None if error.size_limit().is_some() => "regular expression is too large".to_owned(),
        None => error.to_string(),
    }
}

/// Returns the last line of a syntax error, which says what is wrong.
fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or(text).trim().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_stay_are_counted() {
        let compile = |source: &str| Pattern::new(source.as_bytes(), b"").map(drop);
        let counted = |patterns: usize, source: &str| {
            held::within(Some(1 << 20), || (0..patterns).try_for_each(|_| compile(source)))
        };
        for (patterns, source) in [(60, "^a.b"), (60, "(?=a)b"), (8, r"\w+[^a]{9}")] {
            assert!(counted(patterns, source).is_ok(), "{source}");
            let error = counted(5_000, source).unwrap_err();
            assert_eq!(error.code(), Code::EXCEEDED_MEMORY_LIMIT, "{source}");
        }
        assert!((0..5_000).try_for_each(|_| compile("^a.b")).is_ok(), "outside of a call nothing is counted");
    }

    #[test]
    fn a_search_returns_what_pcre_returns() {
        for (source, text, from, expected) in [
            ("a$", "a\n", 0, Some(vec![Some(0..1)])),
            ("(a)|(b)", "b", 0, Some(vec![Some(0..1), None, Some(0..1)])),
            (r"a\Kb", "ab", 0, Some(vec![Some(1..2)])),
            ("(?<=(a))b", "ab", 0, Some(vec![Some(1..2), Some(0..1)])),
            ("(?<=a)b", "ab", 1, Some(vec![Some(1..2)])),
            (r"\Gb", "ab", 0, None),
            (r"\Gb", "ab", 1, Some(vec![Some(1..2)])),
            ("^b", "ab", 1, None),
            ("(?=(é))é", "xé", 0, Some(vec![Some(1..3), Some(1..3)])),
        ] {
            let pattern = Pattern::for_use(source.as_bytes(), b"", Use::Search).unwrap();
            assert_eq!(pattern.find(text, from).unwrap(), expected, "/{source}/ in {text:?}");
        }
    }

    #[test]
    fn every_match_begins_with_the_prefix() {
        for (source, options, prefix) in [
            ("^abc", "", Some("abc")),
            ("^abc.*", "", Some("abc")),
            ("^abc?", "", Some("ab")),
            ("^abc*", "", Some("ab")),
            ("^abc+", "", Some("abc")),
            ("^abc{0,2}", "", Some("ab")),
            ("^abc+{0,2}", "", Some("ab")),
            ("^abc+?d*", "", Some("abc")),
            ("^a\\.b", "", Some("a.b")),
            ("^\\Qa.b\\E", "", Some("a.b")),
            ("\\Aabc", "", Some("abc")),
            ("\\Aabc", "m", Some("abc")),
            ("^abc", "i", None),
            ("^abc", "m", None),
            ("^a b", "x", Some("ab")),
            ("^abc|d", "", None),
            ("^(abc|d)", "", None),
            ("^(ab)c", "", Some("abc")),
            ("^a(b|c)", "", Some("a")),
            ("^(?i)abc", "", None),
            ("^?abc", "", None),
            ("abc", "", None),
            ("^", "", Some("")),
            ("", "", Some("")),
            (".*", "", Some("")),
            ("a*", "", Some("")),
            ("\\b", "", None),
            ("^abc(?=d)", "", Some("abc")),
            ("^abc(?=d)", "i", None),
            ("^abc++d", "", Some("ab")),
            (r"^abc\Kd", "", Some("abc")),
            (r"^ab(c)\1", "", Some("abc")),
            (r"^ab(c(d)\2)", "", Some("ab")),
            ("^(?!a)abc", "", None),
            ("^ab(?!c)|d", "", None),
            ("^(?:ab|cd(?=e))", "", None),
            ("^ab$\n", "", Some("ab")),
            ("(?=a)^abc", "", None),
        ] {
            let pattern = Pattern::new(source.as_bytes(), options.as_bytes()).unwrap();
            let found = pattern.prefix().map(|prefix| &*prefix.text);
            assert_eq!(found, prefix.map(str::as_bytes), "/{source}/{options}");
        }
    }

    #[test]
    fn a_prefix_decides_where_nothing_else_is_required() {
        for (source, options, decides) in [
            ("^abc", "", Decides::All),
            ("^abc", "s", Decides::All),
            ("^abc.*", "", Decides::All),
            ("^abc.*d?", "", Decides::All),
            ("^(ab)c(d|e)*", "", Decides::All),
            ("\\Aabc", "m", Decides::All),
            ("^ab c # comment", "x", Decides::All),
            ("", "", Decides::All),
            ("^abc$", "", Decides::Some),
            ("^abc\\b", "", Decides::Some),
            ("^abc.", "", Decides::Some),
            ("^abc?d", "", Decides::Some),
            ("^abc.*d", "", Decides::Some),
            ("^abc(?=d)", "", Decides::Some),
            ("^abc(?=d)?", "", Decides::Some),
            ("^abc++", "", Decides::Some),
        ] {
            let pattern = Pattern::new(source.as_bytes(), options.as_bytes()).unwrap();
            assert_eq!(pattern.prefix().unwrap().decides, decides, "/{source}/{options}");
        }
    }
}
