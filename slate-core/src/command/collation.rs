use slate_query::{Code, raw::Doc};

use super::fields::{Fields, missing};
use crate::{Error, Result};

/// The languages for which MongoDB has collations, sorted.
const LANGUAGES: [&str; 96] = [
    "af", "am", "ar", "as", "az", "be", "bg", "bn", "bo", "bs", "ca", "ceb", "chr", "cs", "cy", "da", "de", "dsb",
    "dz", "ee", "el", "en", "eo", "es", "et", "fa", "fi", "fil", "fo", "fr", "ga", "gl", "gu", "ha", "haw", "he", "hi",
    "hr", "hsb", "hu", "hy", "id", "ig", "is", "it", "ja", "ka", "kk", "kl", "km", "kn", "ko", "kok", "ky", "lb",
    "lkt", "ln", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms", "mt", "my", "nb", "ne", "nl", "nn", "om", "or", "pa",
    "pl", "ps", "pt", "ro", "ru", "se", "si", "sk", "sl", "smn", "sq", "sr", "sv", "sw", "ta", "te", "th", "to", "tr",
    "ug", "uk", "ur",
];

/// The second half of [`LANGUAGES`].
const MORE_LANGUAGES: [&str; 9] = ["uz", "vi", "wae", "wo", "xh", "yi", "yo", "zh", "zu"];

/// Rejects collations: an invalid one as MongoDB does, and every other one except the simple collation. No collation,
/// an empty one and `{locale: "simple"}` compare strings by their bytes, as Slate does.
pub(super) fn check(collation: Option<Doc<'_>>) -> Result<()> {
    let Some(collation) = collation.filter(|collation| !collation.is_empty()) else { return Ok(()) };
    let mut fields = Fields::read("collation", collation)?;
    let locale = fields.string("locale")?;
    let alone = fields.names().next().is_none();
    for name in ["caseLevel", "numericOrdering", "normalization", "backwards"] {
        fields.boolean(name)?;
    }
    let strength = fields.integer("strength")?;
    for (name, values) in [
        ("caseFirst", &["upper", "lower", "off"][..]),
        ("alternate", &["non-ignorable", "shifted"][..]),
        ("maxVariable", &["punct", "space"][..]),
    ] {
        if let Some(value) = fields.string(name)?
            && !values.contains(&value)
        {
            let message = format!("Enumeration value '{value}' for field 'collation.{name}' is not a valid value.");
            return Err(Error::invalid(Code::BAD_VALUE, message).at(name));
        }
    }
    fields.string("version")?;
    fields.finish()?;
    let locale = locale.ok_or_else(|| missing("collation", "locale"))?;
    if strength.is_some_and(|strength| !(1..=5).contains(&strength)) {
        return Err(Error::invalid(Code::BAD_VALUE, "a collation's strength is from 1 to 5").at("strength"));
    }
    match (locale, alone) {
        ("simple", true) => Ok(()),
        ("simple", false) => {
            Err(Error::invalid(Code::BAD_VALUE, "the locale 'simple' takes no other options").at("collation"))
        }
        (locale, _) if is_known(locale) => Err(Error::unsupported_by_name("collation").at("collation")),
        (locale, _) => {
            let message = format!("Field 'locale' is invalid in: {{ locale: \"{locale}\" }}");
            Err(Error::invalid(Code::BAD_VALUE, message).at("locale"))
        }
    }
}

/// Parses a language, optionally with a script, a country and the like after `_` or `@`.
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
