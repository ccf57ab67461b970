//! Collations: the order and equality of strings in a language, by the Unicode Collation Algorithm.
//!
//! A collation replaces the strings of a value by their sort keys: bytes that compare as the strings do. All other code
//! compares the resulting values as it compares any others. Values of other types stay as they are: code compares by its bytes, and
//! above all strings, as without a collation.

#[cfg_attr(not(feature = "collation"), path = "no_collator.rs")]
mod collator;
mod parse;

use std::{cmp::Ordering, fmt, sync::Arc};

use bson::{RawDocumentBuf, rawdoc};

use self::collator::Collator;
use crate::{
    Code, Error, Result, order,
    raw::{Doc, OwnedValue, Value, Writer},
    value_set::AsValue,
};

/// The version of the sort keys. It changes whenever a release of the collator changes the sort key of some string, or another type
/// of values gets sort keys or loses them, because indexes contain sort keys.
pub const VERSION: &str = "icu4x-3";

/// The version before, in which code had sort keys as if it were a string. Indexes of that version stay readable: see
/// [`Collation::of_version`].
pub const CODE_AS_STRINGS: &str = "icu4x-2";

/// The options of a collation, as MongoDB names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollationOptions {
    /// The language, such as `en`, `fr_CA` or `de@collation=phonebook`.
    pub locale: String,
    /// From 1 (base letters only) to 5 (identical strings only); 3 if absent.
    pub strength: Option<u8>,
    /// Whether case is compared where the strength would ignore it.
    pub case_level: Option<bool>,
    /// `upper`, `lower` or `off`.
    pub case_first: Option<String>,
    /// Whether digits compare as numbers.
    pub numeric_ordering: Option<bool>,
    /// `non-ignorable`, or `shifted`, which ignores spaces and, unless `max_variable` is `space`, punctuation.
    pub alternate: Option<String>,
    /// `punct` or `space`.
    pub max_variable: Option<String>,
    /// Whether accents are compared from the end.
    pub backwards: Option<bool>,
}

/// The order of strings in a language. Cheap to clone.
#[derive(Clone)]
pub struct Collation(Arc<CollationInner>);

struct CollationInner {
    collator: Collator,
    /// All options are present.
    options: CollationOptions,
    version: &'static str,
}

/// Two collations are equal if they have the same options. Their versions may differ.
impl PartialEq for Collation {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.options == other.0.options
    }
}

impl Eq for Collation {}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Collation").field(&self.0.options.locale).finish()
    }
}

impl Collation {
    /// Makes the collation of a language.
    ///
    /// # Errors
    /// `BadValue` (2) for an invalid locale and for options that cannot take effect; `NotImplemented` (238) for `backwards` in a language with rules of its own, and for every
    /// collation without the feature `collation`.
    pub fn new(options: &CollationOptions) -> Result<Self> {
        let completed = complete(options);
        check(&completed)?;
        let collator = Collator::new(options)?;
        Ok(Self(Arc::new(CollationInner { collator, options: completed, version: VERSION })))
    }

    /// Returns the same collation for an index with sort keys of this version. `None`: the sort keys of the version are unknown.
    ///
    /// # Errors
    /// As [`Collation::new`].
    pub fn of_version(&self, version: &str) -> Result<Option<Self>> {
        let Some(version) = [VERSION, CODE_AS_STRINGS].into_iter().find(|known| *known == version) else {
            return Ok(None);
        };
        let (collator, options) = (Collator::new(&self.0.options)?, self.0.options.clone());
        Ok(Some(Self(Arc::new(CollationInner { collator, options, version }))))
    }

    /// Returns whether code has sort keys, as if it were a string. Only in indexes of an earlier version.
    pub(crate) fn replaces_code(&self) -> bool {
        self.0.version == CODE_AS_STRINGS
    }

    /// Returns the collation as a document, in MongoDB's form with all options.
    pub fn to_document(&self) -> RawDocumentBuf {
        let CollationOptions {
            locale,
            strength,
            case_level,
            case_first,
            numeric_ordering,
            alternate,
            max_variable,
            backwards,
        } = &self.0.options;
        rawdoc! {
            "locale": locale.as_str(),
            "caseLevel": case_level.unwrap_or_default(),
            "caseFirst": case_first.as_deref().unwrap_or_default(),
            "strength": i32::from(strength.unwrap_or_default()),
            "numericOrdering": numeric_ordering.unwrap_or_default(),
            "alternate": alternate.as_deref().unwrap_or_default(),
            "maxVariable": max_variable.as_deref().unwrap_or_default(),
            "normalization": false,
            "backwards": backwards.unwrap_or_default(),
            "version": self.0.version,
        }
    }

    /// Returns the value with its strings replaced by their sort keys.
    pub fn apply(&self, value: Value<'_>) -> OwnedValue {
        if !has_text(value) && !self.replaces_code() {
            return value.to_owned();
        }
        let mut out = Writer::new();
        self.write(b"", value, &mut out);
        let document = out.finish();
        Doc::new(&document).elements().next().map_or(Value::NULL, |element| element.value).to_owned()
    }

    /// Writes the fields of a document for which `is_wanted` returns true, with their strings replaced.
    pub fn write_fields(&self, document: Doc<'_>, is_wanted: impl Fn(&[u8]) -> bool, out: &mut Writer) {
        for element in document.elements().filter(|element| is_wanted(element.name)) {
            self.write(element.name, element.value, out);
        }
    }

    fn write(&self, name: &[u8], value: Value<'_>, out: &mut Writer) {
        if let Some(text) = if self.replaces_code() { value.text() } else { value.string() } {
            let key = self.0.collator.sort_key(text);
            out.append_string(name, &key);
        } else if let Some(document) = value.as_document() {
            out.open_document(name);
            self.write_fields(document, |_| true, out);
            out.close();
        } else if let Some(array) = value.as_array() {
            out.open_array(name);
            self.write_fields(array, |_| true, out);
            out.close();
        } else {
            out.append(name, value);
        }
    }
}

/// Returns the options with the defaults of those that are absent.
fn complete(options: &CollationOptions) -> CollationOptions {
    CollationOptions {
        locale: options.locale.clone(),
        strength: options.strength.or(Some(3)),
        case_level: options.case_level.or(Some(false)),
        case_first: options.case_first.clone().or_else(|| Some("off".into())),
        numeric_ordering: options.numeric_ordering.or(Some(false)),
        alternate: options.alternate.clone().or_else(|| Some("non-ignorable".into())),
        max_variable: options.max_variable.clone().or_else(|| Some("punct".into())),
        backwards: options.backwards.or_else(|| Some(is_french_canadian(&options.locale))),
    }
}

/// Refuses options that cannot take effect at the strength, as MongoDB does.
fn check(completed: &CollationOptions) -> Result<()> {
    let strength = completed.strength.unwrap_or_default();
    let refused = |message: &str, option| Err(Error::new(Code::BAD_VALUE, message).at(option));
    if completed.backwards == Some(true) && strength == 1 {
        return refused("'backwards' is invalid with a 'strength' of 1", "backwards");
    }
    let orders_cases = completed.case_first.as_deref().is_some_and(|first| first != "off");
    if orders_cases && completed.case_level != Some(true) && strength < 3 {
        let message = "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2";
        return refused(message, "caseFirst");
    }
    Ok(())
}

/// Returns whether accents are compared from the end of a string, as in Canadian French.
fn is_french_canadian(locale: &str) -> bool {
    let name = locale.split('@').next().unwrap_or_default();
    name.eq_ignore_ascii_case("fr_CA")
}

/// Returns the order of two values, whose strings are compared by a collation if there is one.
pub(crate) fn compare(collation: Option<&Collation>, a: Value<'_>, b: Value<'_>) -> Ordering {
    match collation {
        Some(collation) if has_text(a) && has_text(b) => {
            order::compare(collation.apply(a).as_value(), collation.apply(b).as_value())
        }
        _ => order::compare(a, b),
    }
}

/// A value, and the one that is compared in its place.
#[derive(Clone, Debug)]
pub(crate) struct Compared<'v> {
    pub(crate) value: Value<'v>,
    /// The value with its strings replaced. `None`: there is no collation, or no string.
    replaced: Option<OwnedValue>,
}

impl<'v> Compared<'v> {
    pub(crate) fn new(collation: Option<&Collation>, value: Value<'v>) -> Self {
        let replaced = collation.filter(|_| has_text(value)).map(|collation| collation.apply(value));
        Self { value, replaced }
    }
}

impl AsValue for Compared<'_> {
    fn as_value(&self) -> Value<'_> {
        self.replaced.as_ref().map_or(self.value, OwnedValue::as_value)
    }
}

/// Returns a sort key as hexadecimal digits, for output.
pub fn show_sort_key(key: &[u8]) -> String {
    let digits: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{digits}")
}

/// Returns whether the value is or contains a string or symbol, so that a collation can change how it compares.
pub fn has_text(value: Value<'_>) -> bool {
    value.string().is_some() || value.as_container().is_some_and(|container| container.values().any(has_text))
}

#[cfg(test)]
#[cfg(feature = "collation")]
mod tests {
    use bson::bson;

    use super::*;

    fn compare(options: &CollationOptions, a: bson::Bson, b: bson::Bson) -> Ordering {
        let collation = Collation::new(options).unwrap();
        let apply = |value: bson::Bson| collation.apply(OwnedValue::from(value).as_value());
        order::compare(apply(a).as_value(), apply(b).as_value())
    }

    fn of(locale: &str, strength: u8) -> CollationOptions {
        CollationOptions { locale: locale.into(), strength: Some(strength), ..CollationOptions::default() }
    }

    #[test]
    fn strings_compare_as_in_the_language() {
        assert_eq!(compare(&of("en", 2), bson!("Dog"), bson!("dOG")), Ordering::Equal);
        assert_eq!(compare(&of("en", 1), bson!("café"), bson!("CAFE")), Ordering::Equal);
        assert_eq!(compare(&of("en", 3), bson!("a"), bson!("B")), Ordering::Less);
        assert_eq!(compare(&of("en", 3), bson!("a"), bson!("A")), Ordering::Less);
        assert_eq!(compare(&of("sv", 3), bson!("z"), bson!("ö")), Ordering::Less);
        assert_eq!(compare(&of("de", 3), bson!("z"), bson!("ö")), Ordering::Greater);
        assert_eq!(compare(&of("en", 2), bson!(["A", { "b": "C" }]), bson!(["a", { "b": "c" }])), Ordering::Equal);
        assert_eq!(compare(&of("en", 2), bson!(5), bson!("a")), Ordering::Less);
        let numeric = CollationOptions { numeric_ordering: Some(true), ..of("en", 3) };
        assert_eq!(compare(&numeric, bson!("item 10"), bson!("item 9")), Ordering::Greater);
        let upper = CollationOptions { case_first: Some("upper".into()), ..of("en", 3) };
        assert_eq!(compare(&upper, bson!("a"), bson!("A")), Ordering::Greater);
        let shifted = CollationOptions { alternate: Some("shifted".into()), ..of("en", 1) };
        assert_eq!(compare(&shifted, bson!("black-bird"), bson!("blackbird")), Ordering::Equal);
    }

    #[test]
    fn absent_options_have_their_defaults() {
        let (short, long) = (of("en", 3), CollationOptions { locale: "en".into(), ..CollationOptions::default() });
        let (short, long) = (Collation::new(&short).unwrap(), Collation::new(&long).unwrap());
        assert_eq!(short, long);
        assert_ne!(short, Collation::new(&of("en", 2)).unwrap());
        let again = Collation::parse(Doc::from(&short.to_document())).unwrap().unwrap();
        assert_eq!(again, short);
        assert!(Collation::new(&of("fr_CA", 3)).unwrap().to_document().get_bool("backwards").unwrap());
    }

    /// If this fails after an upgrade of the collator, [`VERSION`] must change.
    #[test]
    fn sort_keys_are_those_of_the_version() {
        let key = |locale, strength, text: &str| {
            // MongoDB refuses fr_CA, which has `backwards`, at strength 1.
            let options = CollationOptions { backwards: Some(false), ..of(locale, strength) };
            Collation::new(&options).unwrap().0.collator.sort_key(text.as_bytes())
        };
        let texts = ["", "a", "Zebra", "École 10", "straße", "日本", "e\u{301}", "🦀", "ﬁ-x", "Ωmega"];
        let keys = [("en", 2), ("de", 3), ("fr_CA", 1), ("sv", 4), ("ja", 5)].map(|(locale, strength)| {
            texts.iter().flat_map(|text| [key(locale, strength, text), vec![b'|']].concat()).collect::<Vec<_>>()
        });
        let sum = keys.concat().iter().fold(0_u32, |sum, byte| sum.rotate_left(5) ^ u32::from(*byte));
        assert_eq!(sum, 2_590_089_217, "the checksum of {} bytes of sort keys", keys.concat().len());
    }

    #[test]
    fn invalid_options_are_refused() {
        for options in [of("", 3), of("not a locale", 3)] {
            assert_eq!(Collation::new(&options).unwrap_err().code(), Code::BAD_VALUE, "{options:?}");
        }
        let backwards = CollationOptions { backwards: Some(true), ..of("sv", 2) };
        assert_eq!(Collation::new(&backwards).unwrap_err().code(), Code::NOT_IMPLEMENTED);
    }

    #[test]
    fn accents_are_compared_from_the_end_where_they_should_be() {
        let backwards = |locale, backwards| CollationOptions { backwards, ..of(locale, 2) };
        for (options, is_less) in [
            (backwards("fr", None), true),
            (backwards("fr", Some(true)), false),
            (backwards("en", Some(true)), false),
            (backwards("fr_CA", None), false),
            (backwards("fr_CA", Some(false)), true),
        ] {
            assert_eq!(compare(&options, bson!("coté"), bson!("côte")).is_lt(), is_less, "{options:?}");
        }
    }
}
