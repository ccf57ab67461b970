//! Reads MongoDB's collation documents.

use super::{Collation, CollationOptions};
use crate::{
    Code, Error, Result,
    number::Number,
    raw::{Doc, Element},
};

/// The languages for which MongoDB has collations, sorted.
const LANGUAGES: [&str; 96] = [
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bo", "bs", "ca", "ceb", "chr", "cs", "cy", "da", "de", "dsb",
    "dz", "ee", "el", "en", "eo", "es", "et", "fa", "fi", "fil", "fo", "fr", "ga", "gl", "gu", "ha", "haw", "he", "hi",
    "hr", "hsb", "hu", "hy", "id", "ig", "is", "it", "ja", "ka", "kk", "kl", "km", "kn", "ko", "kok", "ky", "lb",
    "lkt", "ln", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms", "mt", "my", "nb", "ne", "nl", "nn", "om", "or", "pa",
    "pl", "ps", "pt", "ro", "ru", "se", "si", "sk", "sl", "smn", "sq", "sr", "sv", "sw", "ta", "te", "th", "to", "tr",
    "ug", "uk", "ur",
];

/// The rest of [`LANGUAGES`].
const MORE_LANGUAGES: [&str; 9] = ["uz", "vi", "wae", "wo", "xh", "yi", "yo", "zh", "zu"];

impl Collation {
    /// Reads a collation document: `{locale: "en", strength: 2}`. `None` for an empty document and for `{locale: "simple"}`, which
    /// compare strings by their bytes.
    ///
    /// # Errors
    /// MongoDB's codes: `TypeMismatch` (14), 40414 without a locale, 40415 for an unknown field, `BadValue` (2); those of
    /// [`Collation::new`].
    pub fn parse(document: Doc<'_>) -> Result<Option<Self>> {
        if document.is_empty() {
            return Ok(None);
        }
        let mut options = CollationOptions::default();
        let mut locale = None;
        for element in document.elements() {
            let name = element.display_name();
            match &*name {
                "locale" => locale = text(element, &[])?,
                "strength" => options.strength = strength(element)?,
                "caseLevel" => options.case_level = boolean(element)?,
                "caseFirst" => options.case_first = text(element, &["upper", "lower", "off"])?,
                "numericOrdering" => options.numeric_ordering = boolean(element)?,
                "alternate" => options.alternate = text(element, &["non-ignorable", "shifted"])?,
                "maxVariable" => options.max_variable = text(element, &["punct", "space"])?,
                // MongoDB reads null as an absent option, except for `backwards`.
                "backwards" if is_absent(element) => return Err(mistyped(element, "bool")),
                "backwards" => options.backwards = boolean(element)?,
                "normalization" => drop(boolean(element)?),
                "version" => version(element)?,
                _ => {
                    let message = format!("BSON field 'collation.{name}' is an unknown field.");
                    return Err(Error::new(Code(40_415), message).at(name));
                }
            }
        }
        let missing = || Error::new(Code(40_414), "BSON field 'collation.locale' is missing but a required field");
        options.locale = locale.ok_or_else(missing)?;
        if options.locale == "simple" {
            // The other options are checked above and have no effect.
            return Ok(None);
        }
        if !is_known(&options.locale) {
            let message = format!("Field 'locale' is invalid in: {{ locale: \"{}\" }}", options.locale);
            return Err(Error::new(Code::BAD_VALUE, message).at("locale"));
        }
        Self::new(&options).map(Some)
    }
}

fn mistyped(element: Element<'_>, kind: &str) -> Error {
    let (name, found) = (element.display_name(), element.value.kind().alias());
    let message = format!("BSON field 'collation.{name}' is the wrong type '{found}', expected type '{kind}'");
    Error::new(Code::TYPE_MISMATCH, message).at(name)
}

fn is_absent(element: Element<'_>) -> bool {
    element.value.is_nullish()
}

fn text(element: Element<'_>, values: &[&str]) -> Result<Option<String>> {
    if is_absent(element) {
        return Ok(None);
    }
    let text = element.value.as_str().ok_or_else(|| mistyped(element, "string"))?;
    if values.is_empty() || values.contains(&text) {
        return Ok(Some(text.to_owned()));
    }
    let name = element.display_name();
    let message = format!("Enumeration value '{text}' for field 'collation.{name}' is not a valid value.");
    Err(Error::new(Code::BAD_VALUE, message).at(name))
}

/// Checks the version of the sort keys. Accepts those of this build, and MongoDB's because its collations have the same options.
fn version(element: Element<'_>) -> Result<()> {
    match text(element, &[])?.as_deref() {
        None | Some(super::VERSION | super::CODE_AS_STRINGS | "57.1") => Ok(()),
        Some(other) => {
            let message = format!("the version of collations is {}, not {other}", super::VERSION);
            Err(Error::new(Code::INCOMPATIBLE_COLLATION_VERSION, message).at("version"))
        }
    }
}

fn boolean(element: Element<'_>) -> Result<Option<bool>> {
    if is_absent(element) {
        return Ok(None);
    }
    element.value.as_bool().map(Some).ok_or_else(|| mistyped(element, "bool"))
}

fn strength(element: Element<'_>) -> Result<Option<u8>> {
    if is_absent(element) {
        return Ok(None);
    }
    let number = Number::of(element.value).ok_or_else(|| mistyped(element, "int"))?;
    let strength = number.to_i64_truncating().and_then(|strength| u8::try_from(strength).ok());
    match strength.filter(|strength| (1..=5).contains(strength)) {
        Some(strength) => Ok(Some(strength)),
        None => Err(Error::new(Code::BAD_VALUE, "a collation's strength is from 1 to 5").at("strength")),
    }
}

/// Returns whether MongoDB has collations for the locale's language. Does not check the script, the country and the like after `_`
/// or `@`.
fn is_known(locale: &str) -> bool {
    let language = locale.split(['_', '@']).next().unwrap_or_default();
    LANGUAGES.binary_search(&language).is_ok() || MORE_LANGUAGES.binary_search(&language).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        assert!(LANGUAGES.is_sorted() && MORE_LANGUAGES.is_sorted());
    }
}
