//! Collations: the order and equality of strings in a language, by the Unicode Collation Algorithm.
//!
//! A collation replaces the strings of a value by their sort keys: bytes that compare as the strings do. All other code
//! compares the resulting values as it compares any others.

#[cfg_attr(not(feature = "collation"), path = "no_collator.rs")]
mod collator;
mod parse;

use std::{fmt, sync::Arc};

use self::collator::Collator;
use crate::{
    Result,
    raw::{Doc, Kind, OwnedValue, Value, Writer},
};

/// The options of a collation, as MongoDB names them.
#[derive(Clone, Debug, Default)]
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
    /// `shifted`: spaces, and punctuation unless `max_variable` says otherwise, are ignored; or `non-ignorable`.
    pub alternate: Option<String>,
    /// `punct` or `space`.
    pub max_variable: Option<String>,
    /// Whether accents are compared from the end.
    pub backwards: Option<bool>,
}

/// The order of strings in a language. Cheap to clone.
#[derive(Clone)]
pub struct Collation(Arc<Inner>);

struct Inner {
    collator: Collator,
    locale: String,
}

impl PartialEq for Collation {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Collation {}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Collation").field(&self.0.locale).finish()
    }
}

impl Collation {
    /// Makes the collation of a language.
    ///
    /// # Errors
    /// `BadValue` (2) for an invalid locale; `NotImplemented` (238) for `backwards` in a language that does not compare accents
    /// from the end, and for every collation without the feature `collation`.
    pub fn new(options: &CollationOptions) -> Result<Self> {
        let collator = Collator::new(options)?;
        Ok(Self(Arc::new(Inner { collator, locale: options.locale.clone() })))
    }

    /// The value with its strings replaced by their sort keys.
    pub fn apply(&self, value: Value<'_>) -> OwnedValue {
        if !has_text(value) {
            return value.to_owned();
        }
        let mut out = Writer::new();
        self.write(b"", value, &mut out);
        let document = out.finish();
        Doc::new(&document).elements().next().map_or(Value::NULL, |element| element.value).to_owned()
    }

    /// Writes the fields of a document that `is_wanted`, with their strings replaced.
    pub fn write_fields(&self, document: Doc<'_>, is_wanted: impl Fn(&[u8]) -> bool, out: &mut Writer) {
        for element in document.elements().filter(|element| is_wanted(element.name)) {
            self.write(element.name, element.value, out);
        }
    }

    fn write(&self, name: &[u8], value: Value<'_>, out: &mut Writer) {
        if let Some(text) = value.text() {
            let key = self.0.collator.sort_key(text);
            let length = i32::try_from(key.len() + 1).unwrap_or(i32::MAX).to_le_bytes();
            let text = [&length[..], &key, &[0]].concat();
            out.append(name, Value::new(Kind::String, &text));
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

/// Whether a string is in the value, so that a collation changes it.
pub(crate) fn has_text(value: Value<'_>) -> bool {
    value.text().is_some() || value.as_container().is_some_and(|container| container.values().any(has_text))
}

#[cfg(test)]
#[cfg(feature = "collation")]
mod tests {
    use std::cmp::Ordering;

    use bson::bson;

    use super::*;
    use crate::{Code, order};

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
    fn invalid_options_are_refused() {
        for options in [of("", 3), of("not a locale", 3)] {
            assert_eq!(Collation::new(&options).unwrap_err().code(), Code::BAD_VALUE, "{options:?}");
        }
        let backwards = CollationOptions { backwards: Some(true), ..of("fr", 2) };
        assert_eq!(Collation::new(&backwards).unwrap_err().code(), Code::NOT_IMPLEMENTED);
    }
}
