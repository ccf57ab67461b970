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

/// The previous version, in which code had sort keys like a string. Indexes of that version stay readable, except with a collation that ignores only
/// spaces: it ignored other spaces than now; see [`Collation::of_version`].
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
    /// What `shifted` ignores: `punct` for spaces and punctuation, `space` for spaces alone.
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

    /// Returns the same collation for an index with sort keys of this version. `None` if this build cannot compute them.
    ///
    /// # Errors
    /// As [`Collation::new`].
    pub fn of_version(&self, version: &str) -> Result<Option<Self>> {
        let Some(version) = [VERSION, CODE_AS_STRINGS].into_iter().find(|known| *known == version) else {
            return Ok(None);
        };
        let (collator, options) = (Collator::new(&self.0.options)?, self.0.options.clone());
        if version != VERSION && collator.ignores_spaces_only() {
            return Ok(None);
        }
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

/// Returns the options, with defaults in place of absent ones.
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

/// Returns whether the locale is Canadian French, which by default compares accents from the end of a string.
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

/// A value, and its replacement in comparisons.
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

    /// Returns the bytes that the replaced value takes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.replaced.as_ref().map_or(0, OwnedValue::heap_bytes)
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
