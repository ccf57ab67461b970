use icu_collator::{
    CollatorBorrowed, CollatorPreferences,
    options::{AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, Strength},
};
use icu_locale_core::Locale;

use super::{CollationOptions, is_french_canadian};
use crate::{Code, Error, Result, work};

/// The most used languages whose strings are ordered by Unicode's table, without rules of their own.
const UNTAILORED: [&str; 11] = ["de", "en", "fr", "ga", "id", "it", "lb", "ms", "nl", "pt", "sw"];

/// The collator of a language.
pub(super) struct Collator {
    collator: CollatorBorrowed<'static>,
    /// Whether comparisons ignore spaces and count punctuation: `alternate` is `shifted` and `maxVariable` is
    /// `space`.
    ignores_spaces_only: bool,
}

/// Stands for a space other than U+0020: the second punctuation character in Unicode's order, which texts rarely contain.
const UNDERTIE: char = '\u{203f}';

/// Turns spaces other than U+0020 into punctuation; `None` unless the text has one and all its characters are in ICU's table
/// for Latin text.
///
/// A weight in that table contains the tertiary difference between U+0020 and the other spaces, while the weight up to which
/// characters are ignored is that of U+0020 without it (`miniVarTop` in ICU's `collationfastlatin.cpp`). The other spaces are
/// above it, so they are not ignored where ICU compares two strings directly, as MongoDB does.
fn with_visible_spaces(text: &str) -> Option<String> {
    let is_visible = |char| matches!(char, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}');
    let is_latin = |char| matches!(char, '\0'..'\u{180}' | '\u{2000}'..'\u{2040}');
    if !text.contains(is_visible) || !text.chars().all(is_latin) {
        return None;
    }
    Some(text.replace(is_visible, UNDERTIE.encode_utf8(&mut [0; 4])))
}

impl Collator {
    pub(super) fn new(options: &CollationOptions) -> Result<Self> {
        let invalid = || {
            let message = format!("Field 'locale' is invalid in: {{ locale: \"{}\" }}", options.locale);
            Error::new(Code::BAD_VALUE, message).at("locale")
        };
        let (mut name, variant) = options.locale.split_once('@').unwrap_or((&options.locale, ""));
        let is_french_canadian = is_french_canadian(&options.locale);
        match options.backwards.unwrap_or(is_french_canadian) {
            backwards if backwards == is_french_canadian => {}
            // Without `backwards`, Canadian French is ordered as French.
            false => name = "fr",
            // Without `backwards`, Canadian French would be ordered as the languages in `UNTAILORED` are.
            true if variant.is_empty() && UNTAILORED.contains(&name.split('_').next().unwrap_or_default()) => {
                name = "fr_CA";
            }
            true => {
                let message = format!("the collation option 'backwards' of '{}'", options.locale);
                return Err(Error::unsupported(&message).at("backwards"));
            }
        }
        let mut tag = name.replace('_', "-");
        tag.push_str("-u");
        if let Some(variant) = variant.strip_prefix("collation=") {
            tag.push_str("-co-");
            tag.push_str(match variant {
                "phonebook" => "phonebk",
                "traditional" => "trad",
                "dictionary" => "dict",
                other => other,
            });
        }
        match options.case_first.as_deref() {
            Some("upper") => tag.push_str("-kf-upper"),
            Some("lower") => tag.push_str("-kf-lower"),
            _ => tag.push_str("-kf-false"),
        }
        if options.numeric_ordering == Some(true) {
            tag.push_str("-kn");
        }
        let locale: Locale = tag.parse().map_err(|_| invalid())?;
        let mut chosen = CollatorOptions::default();
        chosen.strength = Some(match options.strength {
            Some(1) => Strength::Primary,
            Some(2) => Strength::Secondary,
            Some(4) => Strength::Quaternary,
            Some(5) => Strength::Identical,
            _ => Strength::Tertiary,
        });
        chosen.case_level = options.case_level.map(|is_on| if is_on { CaseLevel::On } else { CaseLevel::Off });
        chosen.alternate_handling = options.alternate.as_deref().map(|alternate| match alternate {
            "shifted" => AlternateHandling::Shifted,
            _ => AlternateHandling::NonIgnorable,
        });
        chosen.max_variable = options.max_variable.as_deref().map(|most| match most {
            "space" => MaxVariable::Space,
            _ => MaxVariable::Punctuation,
        });
        let collator = icu_collator::Collator::try_new(CollatorPreferences::from(&locale), chosen);
        let ignores_spaces_only =
            options.alternate.as_deref() == Some("shifted") && options.max_variable.as_deref() == Some("space");
        collator.map(|collator| Self { collator, ignores_spaces_only }).map_err(|_| invalid())
    }

    /// Returns whether `alternate` is `shifted` and `maxVariable` is `space`.
    pub(super) fn ignores_spaces_only(&self) -> bool {
        self.ignores_spaces_only
    }

    /// Returns bytes that compare as the strings do; none if the call has ended. Invalid UTF-8 is replaced.
    pub(super) fn sort_key(&self, text: &[u8]) -> Vec<u8> {
        let visible = std::str::from_utf8(text).ok().filter(|_| self.ignores_spaces_only).and_then(with_visible_spaces);
        let text = visible.as_deref().map_or(text, str::as_bytes);
        let mut key = Vec::new();
        // A character takes one to five steps. The key of a single text cannot be interrupted.
        if work::spend(text.len()) {
            let _: std::result::Result<(), std::convert::Infallible> =
                self.collator.write_sort_key_utf8_to(text, &mut key);
        }
        key
    }
}
