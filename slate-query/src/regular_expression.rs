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
use translate::Engine;

use crate::{
    Code, Error, Result,
    raw::{Kind, OwnedValue, Value},
};

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// The pattern and its options as written.
    value: OwnedValue,
    compiled: Compiled,
    prefix: Option<Box<[u8]>>,
}

#[derive(Clone, Debug)]
enum Compiled {
    Linear(regex::bytes::Regex),
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

/// The largest pattern in bytes. MongoDB hands up to 32,764 bytes to PCRE, which compiles half as many ordinary characters.
const MAX_LENGTH: usize = 16_384;

/// The largest compiled program in bytes. Counted repetitions multiply its size.
const MAX_PROGRAM: usize = 4 << 20;

impl Pattern {
    /// Compiles a pattern with its options, to test texts.
    ///
    /// # Errors
    /// `BadValue` (2) for a pattern that contains a NUL; 51108 for an unknown option; 51091 for a pattern that does not
    /// compile.
    pub(crate) fn new(source: &[u8], options: &[u8]) -> Result<Self> {
        Self::for_use(source, options, Use::Test)
    }

    /// Compiles a pattern with its options.
    ///
    /// # Errors
    /// As [`Pattern::new`].
    pub(crate) fn for_use(source: &[u8], options: &[u8], wanted: Use) -> Result<Self> {
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
        let translated = translate::translate(text, flags, wanted)?;
        let compiled = match translated.engine {
            Engine::Linear => Compiled::Linear(
                regex::bytes::RegexBuilder::new(&translated.text)
                    .size_limit(MAX_PROGRAM)
                    .dfa_size_limit(MAX_PROGRAM)
                    .build()
                    .map_err(|error| invalid(&reason(&error)))?,
            ),
            Engine::Backtracking => {
                Compiled::Backtracking(Arc::new(Backtracking::new(&translated.text, translated.growth)?))
            }
        };
        Ok(Self { value: to_value(source, options), compiled, prefix: translated.prefix })
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
    /// 51156 if the match takes too many steps.
    pub(crate) fn is_match(&self, text: &[u8]) -> Result<bool> {
        match &self.compiled {
            Compiled::Linear(regex) => Ok(regex.is_match(text)),
            Compiled::Backtracking(backtracking) => backtracking.is_match(&String::from_utf8_lossy(text)),
        }
    }

    /// Returns the first match that starts at `from` or later.
    ///
    /// # Errors
    /// 51156 if the match takes too many steps.
    pub(crate) fn find(&self, text: &str, from: usize) -> Result<Option<Matched>> {
        match &self.compiled {
            Compiled::Linear(regex) => {
                let found = regex.captures_at(text.as_bytes(), from);
                Ok(found.map(|found| found.iter().map(|group| group.map(|group| group.range())).collect()))
            }
            Compiled::Backtracking(backtracking) => backtracking.find(text, from),
        }
    }

    /// Returns the pattern as written.
    pub(crate) fn source(&self) -> &str {
        let (source, _) = self.value.as_value().as_regex().unwrap_or_default();
        std::str::from_utf8(source).unwrap_or_default()
    }

    /// Returns a prefix of every string that matches, if one is known.
    pub(super) fn prefix(&self) -> Option<&[u8]> {
        self.prefix.as_deref()
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

/// Returns the code of an expression that does not compile.
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

/// Returns the engine's message on one line. It may refer to the translated pattern, which the caller never saw.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::Syntax(text) => last_line(text),
        regex::Error::CompiledTooBig(_) => "regular expression is too large".to_owned(),
        other => other.to_string(),
    }
}

/// Returns the last line of a syntax error, which says what is wrong.
fn last_line(text: &str) -> String {
    text.lines().last().unwrap_or(text).trim().trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn is_match(source: &str, options: &str, text: &str) -> bool {
        Pattern::new(source.as_bytes(), options.as_bytes()).unwrap().is_match(text.as_bytes()).unwrap()
    }

    #[test]
    fn pcre_notation_means_what_pcre_means() {
        for (source, options, text, expected) in [
            ("^abc$", "", "abc", true),
            ("^abc$", "", "abc\n", true),
            ("^abc$", "", "abc\nx", false),
            ("^abc$", "m", "x\nabc\ny", true),
            ("abc\\Z", "", "abc\n", true),
            ("abc\\z", "", "abc\n", false),
            ("ABC", "i", "xabcx", true),
            ("É", "i", "é", true),
            ("a.c", "", "a\nc", false),
            ("a.c", "s", "a\nc", true),
            ("a b # c\n d", "x", "abd", true),
            ("a\\ b[ ]c", "x", "a b c", true),
            ("[#]a", "x", "#a", true),
            ("\\d", "", "٣", false),
            ("\\w", "", "é", false),
            ("\\bcaf", "", "écaf", true),
            ("\\B", "", "Aéa", false),
            ("\\B", "", "éé", true),
            ("\\h", "", "\u{a0}", true),
            ("a\\/b", "", "a/b", true),
            ("\\Qa.b\\E+", "", "a.bbb", true),
            ("\\Qa.b\\E", "", "axb", false),
            ("[[:alpha:]]+[^[:digit:]]", "", "ab-", true),
            ("[a[b]", "", "[", true),
            ("[a&&b]", "", "&", true),
            ("[]x]", "", "]", true),
            ("[^]x]", "", "]", false),
            ("a{,2}", "", "a{,2}", true),
            ("x{2}", "", "xx", true),
            ("{", "", "{", true),
            ("(?i)abc", "", "ABC", true),
            ("a(?#note)b", "", "ab", true),
            ("(?<year>\\d{4})", "", "2024", true),
            ("(?m)^b$", "", "a\nb", true),
            ("\\x41\\x{e9}", "", "Aé", true),
            ("\\101", "", "A", true),
            ("\\0101", "", "\u{8}1", true),
            ("[\\b]", "", "\u{8}", true),
            ("\\R", "", "\r\n", true),
            ("[\\w-]+@", "", "a-b@", true),
            ("(*UTF8)é", "", "é", true),
            ("(*UCP)^[[:alpha:]]+$", "", "éя", true),
            ("(*UCP)[[:^digit:]]", "", "٣", false),
            ("(*UCP)[[:punct:]]", "", "«", true),
            ("^\\p{Xan}+$", "", "é9", true),
            ("[\\p{Xwd}]", "", "_", true),
            ("\\P{Xwd}", "", "_", false),
            ("😀", "", "x😀", true),
            ("", "", "", true),
        ] {
            assert_eq!(is_match(source, options, text), expected, "/{source}/{options} in {text:?}");
        }
    }

    #[test]
    fn patterns_that_need_backtracking_mean_what_pcre_means() {
        let password = r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?!.*\s).{8,}$";
        let mut wrong = Vec::new();
        let mail = r"^(?!\.)(?!.*\.\.)[\w.+-]+(?<!\.)@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$";
        for (source, options, text, expected) in [
            (password, "", "Passw0rd", true),
            (password, "", "passw0rd", false),
            (password, "", "Pass w0rd", false),
            (mail, "i", "Ann.Lee@example.org", true),
            (mail, "i", "ann..lee@example.org", false),
            (mail, "i", "ann.@example.org", false),
            ("a(?=b)", "", "ac ab", true),
            ("a(?!b)", "", "ab", false),
            ("a(?!b)", "", "abac", true),
            ("(?<=a)b", "", "cb", false),
            ("(?<=a|bc)d", "", "bcd", true),
            ("(?<=é)x", "", "éx", true),
            ("(?<!a)b", "", "ab", false),
            ("(?<!a)b", "", "b", true),
            ("(?<=^|,)x", "", "a,x", true),
            (r"(?<=\bno )x", "", "so no x", true),
            ("(*pla:a)a", "", "a", true),
            ("(*negative_lookbehind:a)b", "", "ab", false),
            ("(*atomic:a*)a", "", "aaa", false),
            ("a(*FAIL)|b", "", "a", false),
            ("a(*F)|b", "", "b", true),
            (r"(a|b)\1", "", "ab", false),
            (r"(a|b)\1", "", "abb", true),
            (r"(?i)(a)\1", "", "aA", true),
            (r"(a)\1", "i", "aA", true),
            (r"(straße)\1", "i", "straßeSTRAßE", true),
            (r"(?<n>a|b)\k<n>", "", "bb", true),
            (r"(?<n>a|b)\k'n'", "", "bb", true),
            (r"(?<n>a|b)\k{n}", "", "ba", false),
            (r"(?<n>a|b)\g{n}", "", "bb", true),
            (r"(?P<n>a|b)(?P=n)", "", "aa", true),
            (r"(?'n'a|b)(?P=n)", "", "ab", false),
            (r"(a)(b)\g{-1}", "", "abb", true),
            (r"(a)(b)\g{-2}", "", "aba", true),
            (r"(a)(b)\g2", "", "abb", true),
            (r"(a)\g{1}0", "", "aa0", true),
            (r"(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\10", "", "abcdefghijj", true),
            (r"(a)\12", "", "a\n", true),
            (r"(a)?\1b", "", "b", false),
            (r"^(?:(a)|b)*\1$", "", "aba", true),
            (r"\b(\w+) \1\b", "", "is this this", true),
            (r"\b(\w+) \1\b", "", "this thistle", false),
            ("a++b", "", "aab", true),
            ("a++ab", "", "aaab", false),
            ("a*+a", "", "aaa", false),
            ("a?+a", "", "a", false),
            ("a{1,2}+a", "", "aa", false),
            ("(ab)++c", "", "ababc", true),
            ("(?>a+)ab", "", "aaab", false),
            ("(?>a|ab)c", "", "abc", false),
            ("^(?>(a+))b", "", "aab", true),
            (r"a\Kb", "", "ab", true),
            ("(a)?(?(1)b|c)", "", "c", true),
            ("^(a)?(?(1)b|c)$", "", "ab", true),
            ("^(a)?(?(1)b|c)$", "", "ac", false),
            ("^(a)?(?(1)b)$", "", "", true),
            ("^(?<q>\")?x(?(<q>)\")$", "", "\"x\"", true),
            ("^(?<q>\")?x(?('q')\")$", "", "\"x", false),
            ("^(?<q>\")?x(?(q)\")$", "", "x", true),
            ("^(\")?x(?(-1)\"|;)$", "", "x;", true),
            ("^(?(?=a)ab|cd)$", "", "ab", true),
            ("^(?(?=a)ab|cd)$", "", "cd", true),
            ("^(?(?!a)cd|ab)$", "", "ad", false),
            ("a(?(?<=a)b|c)", "", "ac", false),
            (r"^\X$", "", "e\u{301}", true),
            (r"^\X$", "", "👩‍👧", true),
            (r"^\X\X$", "", "🇩🇪🇫🇷", true),
            (r"^\X$", "", "ab", false),
            (r"(?=a)\R", "", "\r\n", false),
            (r"^\R\n", "", "\r\n", true),
            (r"^(?=\r)\R\n", "", "\r\n", false),
            ("(?=a)*b", "", "b", true),
            ("(?:(?=a)a){2,}b", "", "aab", true),
            ("a$\n", "", "a\n", true),
            ("a$\nb", "", "a\nb", false),
            ("(a$|b)\n", "", "a\n", true),
            ("^$", "m", "a\n", false),
            ("^$", "m", "a\n\nb", true),
            ("^", "m", "", true),
            ("(?=K)k", "i", "\u{212a}", true),
            (r"(?=\w)\w", "i", "\u{17f}", false),
            (r"(?=.)\bx", "i", "\u{17f}x", true),
            (r"(?=x)\Bx", "", "yx", true),
            (r"(?=.)[[:alpha:]\d-]+$", "", "a-1", true),
            ("(?=a) a # c", "x", "a", true),
            (r"(?=a)\Qa.b\E", "", "a.b", true),
            (r"(?s)(?=a.b)a\Nb", "", "a\nb", false),
            ("(?=a.b)a.b", "s", "a\nb", true),
            ("(?U)(?=a)a+b", "", "aab", true),
            ("a**", "", "aa", true),
            ("^a+{2}$", "", "aaa", true),
            ("^(?=a)a{2}{2}$", "", "aaaa", true),
        ] {
            let found = Pattern::new(source.as_bytes(), options.as_bytes()).and_then(|it| it.is_match(text.as_bytes()));
            if found.as_ref().ok() != Some(&expected) {
                wrong.push(format!("/{source}/{options} in {text:?}: {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn only_patterns_that_need_backtracking_use_it() {
        for (source, options, expected) in [
            ("^abc$", "", false),
            ("^(a|b$)", "", false),
            ("^a$|^b$", "", false),
            ("(?:a$)?", "", false),
            ("^a", "m", false),
            ("^$", "m", true),
            (r"\babc\b", "i", false),
            (r"\Gabc", "", false),
            ("a(?=b)", "", true),
            (r"(a)\1", "", true),
            ("a$b", "", true),
            (r"(?<name>a)\h\R", "", false),
        ] {
            let pattern = Pattern::new(source.as_bytes(), options.as_bytes()).unwrap();
            assert_eq!(pattern.can_fail(), expected, "/{source}/{options}");
        }
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
    fn a_match_that_takes_too_many_steps_is_an_error() {
        for (source, text) in
            [(r"^(?:(?=a)a+)+$", format!("{}b", "a".repeat(40))), (r"^(?:a(?!c)|aa)+$", format!("{}b", "a".repeat(60)))]
        {
            let pattern = Pattern::new(source.as_bytes(), b"").unwrap();
            assert_eq!(pattern.is_match(text.as_bytes()).unwrap_err().code(), Code(51156), "{source}");
            assert_eq!(failure::watch(|| pattern.holds(text.as_bytes())).unwrap_err().code(), Code(51156), "{source}");
            // The failure belongs to one evaluation.
            assert!(!failure::watch(|| pattern.holds(b"q")).unwrap(), "{source}");
        }
        let long = format!("{}Secret1", "a".repeat(1 << 17));
        assert!(is_match(r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{8,}$", "", &long));
        assert!(is_match(r"(?<!b)Secret|Sec(?!ret)", "", &long));
    }

    #[test]
    fn lookaround_in_a_loop_is_refused_for_long_texts() {
        for (source, is_refused) in [
            ("^(?:(?=.*x).)*$", true),
            ("^(?:(?!.*x).)+$", true),
            ("^(?:((?=.*x))[ab])*$", true),
            ("^(?:(?=.*x).){5}", true),
            ("^(?:(?=(?:(?!.*y).)*x).)*$", true),
            ("^(?:(?!xx).)*$", false),
            ("^(?:(?=a{3})a)*", false),
            ("^(?=.*b)(?=.*a).{8,}$", false),
            ("^(?:(?=.*x).)?a*b$", false),
            (r"(a)\1*b", false),
        ] {
            let text = format!("{}b", "a".repeat(1 << 17));
            let found = Pattern::new(source.as_bytes(), b"").unwrap().is_match(text.as_bytes());
            match found {
                Ok(_) => assert!(!is_refused, "{source}"),
                Err(error) => assert!(is_refused && error.code() == Code(51156), "{source}: {error}"),
            }
        }
        assert!(is_match("^(?:(?=.*b).)*b$", "", &format!("{}b", "a".repeat(1000))));
    }

    #[test]
    fn a_match_ends_before_its_deadline_or_fails() {
        let steps = format!("{}b", "a".repeat(40));
        let scans = "ab".repeat(1 << 19);
        let (within, late) = (Duration::from_millis(50), Duration::from_millis(500));
        for (source, text) in [("^(?:(?=a)a+)+$", &steps), ("(?=(?:.*b)+c).", &scans), (r"(.+)\1c", &scans)] {
            let pattern = Pattern::new(source.as_bytes(), b"").unwrap();
            let start = Instant::now();
            let found = failure::until(Some(start + within), || failure::watch(|| pattern.holds(text.as_bytes())));
            assert!(matches!(found.unwrap_err().code(), Code::MAX_TIME_MS_EXPIRED | Code(51156)), "{source}");
            // The time is for slow machines and builds without optimization.
            assert!(start.elapsed() < within + late, "{source}: {:?}", start.elapsed());
        }
        let pattern = Pattern::new(b"a(?=b)", b"").unwrap();
        let past = failure::until(Some(Instant::now()), || pattern.is_match(b"ab"));
        assert_eq!(past.unwrap_err().code(), Code::MAX_TIME_MS_EXPIRED);
        assert!(pattern.is_match(b"ab").unwrap());
    }

    #[test]
    fn constructs_that_no_engine_has_fail_by_name() {
        for (source, construct) in [
            ("(?R)", "recursion"),
            ("(?1)", "recursion"),
            ("(a)(?-1)", "recursion"),
            ("(?+1)(a)", "recursion"),
            ("(?<n>a)(?&n)", "recursion"),
            ("(?<n>a)(?P>n)", "recursion"),
            (r"(a)\g<1>", "recursion"),
            ("(?(R)a|b)", "recursion"),
            ("(?(DEFINE)(a))", "DEFINE"),
            ("(?|a|b)", "branch reset"),
            ("a(*COMMIT)b", "verb"),
            ("a(*ACCEPT)b", "verb"),
            ("a(?C1)b", "callout"),
            (r"a\Cb", "\\C"),
        ] {
            let error = Pattern::new(source.as_bytes(), b"").unwrap_err();
            assert_eq!(error.code(), Code(51091), "{source}");
            assert!(error.message().contains(construct), "{source}: {}", error.message());
        }
    }

    #[test]
    fn invalid_patterns_are_an_error() {
        for source in [
            "[invalid",
            "(",
            ")",
            "*a",
            "a{3,2}",
            "\\",
            "[z-a]",
            "(?z)",
            "\\y",
            "[[:nope:]]",
            "[:alpha:]",
            "(?<n",
            "(?<=a+)b",
            "(?<=a|b*)c",
            r"(a)\2",
            r"\k<n>",
            "(?P=n)",
            r"\1",
            "(?(1)a)",
            "(a)(?(1)b|c|d)",
            "(?=a",
            "(?<1n>a)",
            r"(?=a\K)",
            "(?(>a)b)",
        ] {
            assert_eq!(Pattern::new(source.as_bytes(), b"").unwrap_err().code(), Code(51091), "{source}");
        }
        assert_eq!(Pattern::new(b"a{1000}{1000}{1000}", b"").unwrap_err().code(), Code(51091));
        assert_eq!(Pattern::new(b"a", b"g").unwrap_err().code(), Code(51108));
        assert_eq!(Pattern::new(b"a\0b", b"").unwrap_err().code(), Code::BAD_VALUE);
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
            ("^", "", None),
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
            assert_eq!(pattern.prefix(), prefix.map(str::as_bytes), "/{source}/{options}");
        }
    }

    proptest::proptest! {
        #[test]
        fn both_engines_match_the_same_texts(
            parts in proptest::collection::vec(proptest::sample::select(PARTS), 1..8),
            options in proptest::sample::select(&["", "i", "m", "s", "x"][..]),
            text in "[aAbk\u{212a}é1_ \n-]{0,6}",
        ) {
            let plain = parts.concat();
            let forced = format!("(?=)(?:{plain})");
            let (plain, forced) = (compiled(&plain, options), compiled(&forced, options));
            if let (Some(plain), Some(forced)) = (plain, forced) {
                proptest::prop_assert!(forced.can_fail());
                let (plain, forced) = (plain.is_match(text.as_bytes()), forced.is_match(text.as_bytes()));
                proptest::prop_assert_eq!(plain.ok(), forced.ok());
            }
        }

        #[test]
        fn every_pattern_is_compiled_or_refused(
            parts in proptest::collection::vec(proptest::sample::select([PARTS, HARD].concat()), 1..12),
            text in "[aAbk\u{212a}é1_ \n-]{0,6}",
        ) {
            for wanted in [Use::Test, Use::Search] {
                let pattern = Pattern::for_use(parts.concat().as_bytes(), b"", wanted);
                match pattern {
                    Ok(pattern) => {
                        let is_match = pattern.is_match(text.as_bytes());
                        let found = pattern.find(&text, 0);
                        if let (Ok(is_match), Ok(found), Use::Search) = (is_match, found, wanted) {
                            proptest::prop_assert_eq!(is_match, found.is_some());
                        }
                    }
                    Err(error) => proptest::prop_assert_eq!(error.code(), Code(51091)),
                }
            }
        }
    }

    /// Parts of patterns that both engines match. `\n^` is not among them; see docs/semantics.md.
    const PARTS: &[&str] = &[
        "a",
        "A",
        "k",
        "é",
        "1",
        "_",
        " ",
        "\\n",
        ".",
        "[a-k]",
        "[^a]",
        "[[:alpha:]]",
        "\\d",
        "\\w",
        "\\W",
        "\\s",
        "\\b",
        "\\B",
        "\\h",
        "\\N",
        "(a)",
        "(?:a|b)",
        "(?i:k)",
        "(a|)",
        "|",
        "*",
        "+",
        "?",
        "{2}",
        "{0,2}",
        "*?",
        "{1,}",
        "\\z",
        "\\A",
        "$",
        "(?s)",
        "(?-i)",
        "\\Q-\\E",
        "(?:)",
        "()",
        "(?#c)",
        "\\x41",
    ];

    /// Parts of patterns that need backtracking, and halves of them.
    const HARD: &[&str] = &[
        "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?(1)", "(?(?=", "(", ")", ")", ")", ")", "\\1", "\\2", "\\g{-1}", "\\K",
        "\\G", "\\X", "++", "*+", "^", "(?m)", "\\R", "(*FAIL)", "(?U)",
    ];

    fn compiled(source: &str, options: &str) -> Option<Pattern> {
        Pattern::new(source.as_bytes(), options.as_bytes()).ok()
    }
}
