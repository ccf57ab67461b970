//! Regular expressions in PCRE's notation, matched by an engine whose time is linear in the text.
//!
//! Constructs that such an engine does not support (lookaround, back-references, recursion, possessive and atomic
//! groups) fail with the code of an invalid expression and a message that names the construct. Other differences in
//! notation are translated.

mod class;
mod escape;
mod input;
mod prefix;
mod translate;

use crate::{
    Code, Error, Result,
    raw::{Kind, OwnedValue, Value},
};

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// The pattern and its options as written.
    value: OwnedValue,
    compiled: regex::bytes::Regex,
    prefix: Option<Box<[u8]>>,
}

/// The largest pattern in bytes: PCRE's own limit as MongoDB builds it.
const MAX_LENGTH: usize = 32_764;

/// The largest compiled program in bytes. Counted repetitions multiply its size.
const MAX_PROGRAM: usize = 4 << 20;

impl Pattern {
    /// Compiles a pattern with its options.
    ///
    /// # Errors
    /// `BadValue` (2) for a pattern that contains a NUL; 51108 for an unknown option; 51091 for a pattern that does not
    /// compile.
    pub(crate) fn new(source: &[u8], options: &[u8]) -> Result<Self> {
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
        let translated = translate::translate(text, flags)?;
        let compiled = regex::bytes::RegexBuilder::new(&translated)
            .size_limit(MAX_PROGRAM)
            .dfa_size_limit(MAX_PROGRAM)
            .build()
            .map_err(|error| invalid(&reason(&error)))?;
        Ok(Self { value: to_value(source, options), compiled, prefix: prefix::prefix(&translated) })
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
            value.text().is_some_and(|text| self.compiled.is_match(text))
        } else {
            value == self.value.as_value()
        }
    }

    /// Returns the compiled expression, for searches in a text.
    pub(crate) fn compiled(&self) -> &regex::bytes::Regex {
        &self.compiled
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

/// Returns the error for a construct that PCRE supports and a linear-time engine cannot support.
fn needs_pcre(construct: &str) -> Error {
    invalid(&format!("{construct} is not supported"))
}

/// Returns the engine's message on one line. It may refer to the translated pattern, which the caller never saw.
fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::Syntax(text) => {
            text.lines().last().unwrap_or(text).trim().trim_start_matches("error: ").to_owned()
        }
        regex::Error::CompiledTooBig(_) => "regular expression is too large".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_match(source: &str, options: &str, text: &str) -> bool {
        Pattern::new(source.as_bytes(), options.as_bytes()).unwrap().compiled.is_match(text.as_bytes())
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
            ("\\101", "", "A", false),
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
            if source == "\\101" {
                assert_eq!(Pattern::new(source.as_bytes(), b"").unwrap_err().code(), Code(51091));
                continue;
            }
            assert_eq!(is_match(source, options, text), expected, "/{source}/{options} in {text:?}");
        }
    }

    #[test]
    fn constructs_that_need_pcre_fail_by_name() {
        for (source, construct) in [
            ("a(?=b)", "lookahead"),
            ("a(?!b)", "lookahead"),
            ("(?<=a)b", "lookbehind"),
            ("(?<!a)b", "lookbehind"),
            ("(a)\\1", "back-reference"),
            ("(?<n>a)\\k<n>", "back-reference"),
            ("(?P<n>a)(?P=n)", "back-reference"),
            ("a\\Kb", "\\K"),
            ("a++", "possessive"),
            ("a{2}+", "possessive"),
            ("(?>a)", "atomic"),
            ("(?R)", "recursion"),
            ("(?1)", "recursion"),
            ("(?|a|b)", "branch reset"),
            ("(?(1)a|b)", "conditional"),
            ("\\X", "\\X"),
        ] {
            let error = Pattern::new(source.as_bytes(), b"").unwrap_err();
            assert_eq!(error.code(), Code(51091), "{source}");
            assert!(error.message().contains(construct), "{source}: {}", error.message());
        }
    }

    #[test]
    fn invalid_patterns_are_an_error() {
        for source in
            ["[invalid", "(", ")", "*a", "a{3,2}", "\\", "[z-a]", "(?z)", "\\y", "[[:nope:]]", "[:alpha:]", "(?<n"]
        {
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
        ] {
            let pattern = Pattern::new(source.as_bytes(), options.as_bytes()).unwrap();
            assert_eq!(pattern.prefix(), prefix.map(str::as_bytes), "/{source}/{options}");
        }
    }
}
