//! The options of collations, and how strings compare in a language.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cmp::Ordering;

use bson::{Bson, bson};
use slate_query::{
    Code,
    collation::{Collation, CollationOptions},
    order,
    raw::{Doc, OwnedValue},
};

fn compare(options: &CollationOptions, a: Bson, b: Bson) -> Ordering {
    let collation = Collation::new(options).unwrap();
    let apply = |value: Bson| collation.apply(OwnedValue::from(value).as_value());
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

/// If this fails after an upgrade of the collator, `slate_query::collation::VERSION` must change.
#[test]
fn sort_keys_are_those_of_the_version() {
    let key = |locale, strength, text: &str| {
        // MongoDB refuses fr_CA, which has `backwards`, at strength 1.
        let options = CollationOptions { backwards: Some(false), ..of(locale, strength) };
        let text = OwnedValue::from(bson!(text));
        Collation::new(&options).unwrap().apply(text.as_value()).as_value().text().unwrap().to_vec()
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
