//! The order of values under a collation is total, over values of all types.

#![expect(clippy::unwrap_used, reason = "in helpers of tests, too, a panic is the failure")]

mod random;

use std::cmp::Ordering;

use bson::{Document, doc};
use proptest::{collection::vec, prelude::*, sample::select};
use slate_query::{
    collation::{CODE_AS_STRINGS, Collation, VERSION},
    expression::Bindings,
    filter::{Exactness, Filter},
    key,
    number::Number,
    order::{self, Bracket, bracket},
    raw::{Doc, Kind, OwnedValue, Value, Writer},
};

fn collation() -> impl Strategy<Value = Document> {
    select(vec![
        doc! { "locale": "en" },
        doc! { "locale": "en", "strength": 1 },
        doc! { "locale": "en", "strength": 2, "caseLevel": true },
        doc! { "locale": "de", "strength": 3, "caseFirst": "upper" },
        doc! { "locale": "sv", "numericOrdering": true },
        doc! { "locale": "en", "alternate": "shifted", "maxVariable": "space" },
        doc! { "locale": "fr_CA", "strength": 2 },
    ])
}

/// Returns the bindings of an operation with the collation.
fn with(collation: &Document) -> (Collation, Bindings) {
    let document = collation.to_vec().unwrap();
    let collation = Collation::parse(Doc::new(&document)).unwrap().unwrap();
    (collation.clone(), Bindings::new(0).with_collation(Some(collation)))
}

/// Texts of which some are equal at some strength.
fn alike() -> impl Strategy<Value = String> {
    select(["", "a", "A", "á", "b", "B", "item 9", "item 10", "a-b", "ab", "ß", "ss"].map(str::to_owned).to_vec())
}

/// The same texts as strings, symbols, code, and in documents, arrays and scopes.
fn texts() -> impl Strategy<Value = OwnedValue> {
    (alike(), 0..6).prop_map(|(text, form)| {
        let bytes = [&i32::try_from(text.len() + 1).unwrap().to_le_bytes()[..], text.as_bytes(), &[0]].concat();
        let of = |kind| Value::new(kind, &bytes).to_owned();
        match form {
            0 => of(Kind::String),
            1 => of(Kind::Symbol),
            2 => of(Kind::Code),
            3 => OwnedValue::from(bson::Bson::from(doc! { "a": text })),
            4 => OwnedValue::from(bson::bson!([text, 1])),
            _ => {
                let code = bson::JavaScriptCodeWithScope { code: text.clone(), scope: doc! { "a": text } };
                OwnedValue::from(bson::Bson::JavaScriptCodeWithScope(code))
            }
        }
    })
}

fn value() -> impl Strategy<Value = OwnedValue> {
    prop_oneof![2 => texts(), 1 => random::value()]
}

/// Returns an expression with these values as constants in an array.
fn expression(name: &str, values: &[&OwnedValue], wrap: bool) -> OwnedValue {
    let mut writer = Writer::new();
    if wrap {
        writer.open_document(name.as_bytes());
        writer.append(b"sortBy", OwnedValue::from(bson::bson!(1)).as_value());
        writer.open_array(b"input");
    } else {
        writer.open_array(name.as_bytes());
    }
    for (position, value) in values.iter().enumerate() {
        writer.open_document(position.to_string().as_bytes());
        writer.append(b"$literal", value.as_value());
        writer.close();
    }
    writer.close();
    if wrap {
        writer.close();
    }
    Value::new(Kind::Document, &writer.finish()).to_owned()
}

fn compare(bindings: &Bindings, a: &OwnedValue, b: &OwnedValue) -> Ordering {
    let compared = bindings.compute(expression("$cmp", &[a, b], false).as_value()).unwrap().unwrap();
    Number::of(compared.as_value()).unwrap().signum()
}

/// Returns the bytes as which an index contains the value. Bytes are in a total order.
fn encoded(collation: &Collation, value: &OwnedValue) -> Vec<u8> {
    let mut key = Vec::new();
    key::encode(collation.apply(value.as_value()).as_value(), &mut key);
    key
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn values_compare_as_their_keys_do(collation in collation(), a in value(), b in value()) {
        let (collation, bindings) = with(&collation);
        let order = compare(&bindings, &a, &b);
        prop_assert_eq!(order, encoded(&collation, &a).cmp(&encoded(&collation, &b)), "{:?} and {:?}", a, b);
        let brackets = (bracket(a.as_value().kind()), bracket(b.as_value().kind()));
        if brackets.0 != brackets.1 {
            prop_assert_eq!(order, brackets.0.cmp(&brackets.1), "{:?} and {:?}", a, b);
        }
        if brackets.0 == Bracket::Code {
            prop_assert_eq!(order, order::compare(a.as_value(), b.as_value()), "{:?} and {:?}", a, b);
        }
    }

    #[test]
    fn arrays_are_sorted(collation in collation(), values in vec(value(), 0..80)) {
        let (_, bindings) = with(&collation);
        let values: Vec<&OwnedValue> = values.iter().collect();
        let sorted = bindings.compute(expression("$sortArray", &values, true).as_value()).unwrap().unwrap();
        let sorted: Vec<OwnedValue> = sorted.as_value().as_array().unwrap().values().map(Value::to_owned).collect();
        prop_assert_eq!(sorted.len(), values.len());
        for (a, b) in sorted.iter().zip(sorted.iter().skip(1)) {
            prop_assert_ne!(compare(&bindings, a, b), Ordering::Greater, "{:?} before {:?}", a, b);
        }
    }
}

/// Before, a collation that ignores spaces alone ignored those other than U+0020, too.
#[test]
fn sort_keys_without_spaces_have_one_version_only() {
    let (spaces, _) = with(&doc! { "locale": "en", "alternate": "shifted", "maxVariable": "space" });
    assert!(spaces.of_version(CODE_AS_STRINGS).unwrap().is_none());
    assert!(spaces.of_version(VERSION).unwrap().is_some());
    let key = |text: &str| spaces.apply(OwnedValue::from(bson::Bson::from(text)).as_value());
    assert_eq!(key("de luge"), key("deluge"));
    assert_ne!(key("de\u{a0}luge"), key("deluge"));
    assert_eq!(key("de\u{a0}luge"), key("de\u{2009}luge"));
    let (punctuation, _) = with(&doc! { "locale": "en", "alternate": "shifted" });
    assert!(punctuation.of_version(CODE_AS_STRINGS).unwrap().is_some());
}

/// Indexes of the version before contain code as if it were a string, until they are built again.
#[test]
fn an_index_with_code_as_strings_serves_no_condition_on_code() {
    let document = doc! { "locale": "en", "strength": 2 };
    let (collation, bindings) = with(&document);
    let earlier = collation.of_version(CODE_AS_STRINGS).unwrap().unwrap();
    assert_eq!(earlier.to_document().get_str("version").unwrap(), CODE_AS_STRINGS);
    assert!(earlier == collation && collation.of_version("icu4x-1").unwrap().is_none());
    let code = OwnedValue::from(bson::Bson::JavaScriptCode("a".into()));
    assert_eq!(earlier.apply(code.as_value()).as_value().kind(), Kind::String);
    assert_eq!(collation.apply(code.as_value()), code);
    let code = bson::Bson::JavaScriptCode("a".into());
    for (filter, terms) in [
        (doc! { "v": "a" }, [1, 1]),
        (doc! { "v": { "$gt": 5 } }, [1, 1]),
        (doc! { "v": code.clone() }, [1, 0]),
        (doc! { "v": { "$in": [1, code.clone()] } }, [1, 0]),
        (doc! { "v": { "$type": "javascript" } }, [1, 0]),
        (doc! { "$expr": { "$gt": ["$v", 5] } }, [1, 0]),
    ] {
        let parsed = Filter::parse_with(Doc::new(&filter.to_vec().unwrap()), &bindings).unwrap();
        for (index, terms) in [&collation, &earlier].into_iter().zip(terms) {
            let mut found = Vec::new();
            parsed.root().each_term(Some(index), &mut |term| found.push(term.exact));
            assert_eq!(found.len(), terms, "{filter}");
            let is_earlier = std::ptr::eq(index, &earlier);
            assert!(!is_earlier || found.iter().all(|exact| *exact == Exactness::Never), "{filter}");
        }
    }
}
