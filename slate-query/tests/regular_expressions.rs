//! Regular expressions in PCRE's notation, as conditions of filters.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bson::{bson, doc};
use proptest::{collection::vec, prelude::*, sample::select};
use slate_query::{
    Code, Error, Result,
    expression::{Env, Expression, Variables},
    filter::Filter,
    raw::{Doc, OwnedValue},
    work::{self, Limit},
};

fn pattern(source: &str, options: &str) -> Result<Filter> {
    let filter = doc! { "a": { "$regex": source, "$options": options } };
    Filter::parse(Doc::new(&filter.to_vec().unwrap()))
}

fn document(text: &str) -> Vec<u8> {
    doc! { "a": text }.to_vec().unwrap()
}

/// Returns whether a pattern matches the text.
fn holds(pattern: &Filter, text: &str) -> Result<bool> {
    pattern.evaluate(Doc::new(&document(text)))
}

fn is_match(source: &str, options: &str, text: &str) -> bool {
    holds(&pattern(source, options).unwrap(), text).unwrap()
}

/// Returns whether `$regexFind` finds a match of the pattern in the text.
fn is_found(source: &str, text: &str) -> Result<bool> {
    let expression = OwnedValue::from(bson!({ "$regexFind": { "input": "$a", "regex": { "$literal": source } } }));
    let expression = Expression::parse(expression.as_value(), &Variables::default())?;
    let document = document(text);
    let found = expression.evaluate(&Env::new(Doc::new(&document), 0))?;
    Ok(found.as_value().is_some_and(|found| !found.is_nullish()))
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
        let found = pattern(source, options).and_then(|pattern| holds(&pattern, text));
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
        assert_eq!(pattern(source, options).unwrap().can_fail(), expected, "/{source}/{options}");
    }
}

#[test]
fn a_match_that_takes_too_many_steps_is_an_error() {
    for (source, text) in
        [(r"^(?:(?=a)a+)+$", format!("{}b", "a".repeat(40))), (r"^(?:a(?!c)|aa)+$", format!("{}b", "a".repeat(60)))]
    {
        let pattern = pattern(source, "").unwrap();
        assert_eq!(holds(&pattern, &text).unwrap_err().code(), Code(51156), "{source}");
        // The failure belongs to one evaluation.
        assert!(!holds(&pattern, "q").unwrap(), "{source}");
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
        match holds(&pattern(source, "").unwrap(), &text) {
            Ok(_) => assert!(!is_refused, "{source}"),
            Err(error) => assert!(is_refused && error.code() == Code(51156), "{source}: {error}"),
        }
    }
    assert!(is_match("^(?:(?=.*b).)*b$", "", &format!("{}b", "a".repeat(1000))));
}

#[test]
fn a_match_ends_before_its_deadline_or_fails() {
    struct Until(Instant);

    impl Limit for Until {
        fn check(&self) -> Result<()> {
            if Instant::now() < self.0 { Ok(()) } else { Err(Error::new(Code::MAX_TIME_MS_EXPIRED, "late")) }
        }

        fn deadline(&self) -> Option<Instant> {
            Some(self.0)
        }
    }

    let until = |pattern: &Filter, document: &[u8], deadline: Instant| {
        work::during(Arc::new(Until(deadline)), || pattern.evaluate(Doc::new(document))).and_then(|found| found)
    };
    let steps = format!("{}b", "a".repeat(40));
    let scans = "ab".repeat(1 << 19);
    let within = Duration::from_millis(50);
    for (source, text) in [("^(?:(?=a)a+)+$", &steps), ("(?=(?:.*b)+c).", &scans), (r"(.+)\1c", &scans)] {
        let (pattern, document) = (pattern(source, "").unwrap(), document(text));
        let found = until(&pattern, &document, Instant::now() + within);
        // Without the deadline the match would take hours.
        assert!(matches!(found.unwrap_err().code(), Code::MAX_TIME_MS_EXPIRED | Code(51156)), "{source}");
    }
    let (pattern, document) = (pattern("a(?=b)", "").unwrap(), document("ab"));
    let past = until(&pattern, &document, Instant::now());
    assert_eq!(past.unwrap_err().code(), Code::MAX_TIME_MS_EXPIRED);
    assert!(pattern.evaluate(Doc::new(&document)).unwrap());
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
        let error = pattern(source, "").unwrap_err();
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
        assert_eq!(pattern(source, "").unwrap_err().code(), Code(51091), "{source}");
    }
    assert_eq!(pattern("a{1000}{1000}{1000}", "").unwrap_err().code(), Code(51091));
    assert_eq!(pattern("a", "g").unwrap_err().code(), Code(51108));
    assert_eq!(pattern("a\0b", "").unwrap_err().code(), Code::BAD_VALUE);
}

proptest! {
    #[test]
    fn both_engines_match_the_same_texts(
        parts in vec(select(PARTS), 1..8),
        options in select(&["", "i", "m", "s", "x"][..]),
        text in "[aAbk\u{212a}é1_ \n-]{0,6}",
    ) {
        let plain = parts.concat();
        let forced = format!("(?=)(?:{plain})");
        let (plain, forced) = (pattern(&plain, options), pattern(&forced, options));
        if let (Ok(plain), Ok(forced)) = (plain, forced) {
            prop_assert!(forced.can_fail());
                        prop_assert_eq!(holds(&plain, &text).ok(), holds(&forced, &text).ok());
        }
    }

    #[test]
    fn every_pattern_is_compiled_or_refused(
        parts in vec(select([PARTS, HARD].concat()), 1..12),
        text in "[aAbk\u{212a}é1_ \n-]{0,6}",
    ) {
        let source = parts.concat();
        match (pattern(&source, ""), is_found(&source, &text)) {
            (Ok(pattern), Ok(is_found)) => prop_assert_eq!(holds(&pattern, &text).unwrap_or(is_found), is_found),
            (Err(error), _) => prop_assert_eq!(error.code(), Code(51091)),
            (Ok(_), Err(_)) => {}
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
