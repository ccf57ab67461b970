//! Index bounds of filters: every matching document has a key within the bounds, and exact bounds contain only keys of
//! matching documents.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod random;

use bson::{Bson, doc};
use proptest::{collection::vec, prelude::*, sample::select};
use slate_query::{
    expression::Bindings,
    filter::{Exactness, Filter, Node, Ties, Validity},
    pattern::{KeyPattern, Keys},
    raw::{Doc, Kind, OwnedValue, Value},
};

fn array_of(values: &[OwnedValue]) -> OwnedValue {
    let fields: Vec<_> = values.iter().enumerate().map(|(index, value)| (index.to_string(), value.clone())).collect();
    Value::new(Kind::Array, &random::document_of(&fields)).to_owned()
}

fn document_of(fields: &[(String, OwnedValue)]) -> OwnedValue {
    Value::new(Kind::Document, &random::document_of(fields)).to_owned()
}

fn one(name: &str, value: OwnedValue) -> OwnedValue {
    document_of(&[(name.to_owned(), value)])
}

fn of(value: impl Into<Bson>) -> OwnedValue {
    OwnedValue::from(value.into())
}

/// Operands that are similar to the values in documents.
fn operand() -> BoxedStrategy<OwnedValue> {
    prop_oneof![
        6 => (-2_i32..3).prop_map(of),
        2 => (-2_i32..3).prop_map(|int| of(f64::from(int) + 0.5)),
        2 => Just(of(Bson::Null)),
        1 => select(vec![of(Bson::MinKey), of(Bson::MaxKey), of(f64::NAN), of(true), of(""), of("a")]),
        2 => vec((-2_i32..3).prop_map(of), 0..3).prop_map(|values| array_of(&values)),
        2 => select(vec![of(doc! {}), of(doc! {"a": 1}), of(doc! {"b": []})]),
        1 => random::value(),
    ]
    .prop_filter("MongoDB compares nothing to undefined", |value| value.as_value().kind() != Kind::Undefined)
    .boxed()
}

fn literal() -> BoxedStrategy<OwnedValue> {
    operand().prop_filter("a literal", |value| value.as_value().kind() != Kind::Regex).boxed()
}

fn one_operator() -> BoxedStrategy<(String, OwnedValue)> {
    let names = |names: Vec<&'static str>| select(names).prop_map(String::from);
    prop_oneof![
        6 => (names(vec!["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"]), literal()),
        2 => (names(vec!["$in", "$nin", "$all"]), vec(operand(), 0..4).prop_map(|values| array_of(&values))),
        1 => (names(vec!["$exists"]), any::<bool>().prop_map(of)),
        1 => (names(vec!["$type"]), select(vec![
            "double", "string", "object", "array", "null", "int", "number", "bool", "undefined", "date", "symbol", "regex",
        ]).prop_map(of)),
        1 => (names(vec!["$size"]), (0_i32..3).prop_map(of)),
        1 => (names(vec!["$mod"]), (1_i32..4, 0_i32..3).prop_map(|(a, b)| array_of(&[of(a), of(b)]))),
        1 => (names(vec!["$bitsAllSet", "$bitsAnyClear"]), (0_i32..4).prop_map(of)),
        1 => (names(vec!["$regex"]), select(vec!["^a", "a", "^", "^a|b"]).prop_map(of)),
    ]
    .boxed()
}

fn operator() -> BoxedStrategy<(String, OwnedValue)> {
    let flat = one_operator();
    flat.prop_recursive(3, 8, 2, |inner| {
        let operators = vec(inner.clone(), 1..3).prop_map(|operators| document_of(&distinct(operators)));
        prop_oneof![
            2 => inner,
            1 => operators.clone().prop_map(|operators| ("$not".to_owned(), operators)),
            1 => operators.prop_map(|operators| ("$elemMatch".to_owned(), operators)),
            1 => (random::path(), vec(one_operator(), 1..3)).prop_map(|(path, operators)| {
                ("$elemMatch".to_owned(), one(&path, document_of(&distinct(operators))))
            }),
        ]
    })
    .boxed()
}

fn distinct(mut fields: Vec<(String, OwnedValue)>) -> Vec<(String, OwnedValue)> {
    let mut seen = std::collections::BTreeSet::new();
    fields.retain(|(name, _)| seen.insert(name.clone()));
    fields
}

/// Filters that parse.
fn filter() -> BoxedStrategy<Filter> {
    let field = (
        random::path(),
        prop_oneof![
            3 => vec(operator(), 1..3).prop_map(|operators| document_of(&distinct(operators))),
            1 => operand(),
        ],
    );
    let flat = vec(field, 1..4).prop_map(|fields| document_of(&distinct(fields)));
    flat.prop_recursive(2, 6, 3, |inner| {
        let branches = vec(inner.clone(), 1..3).prop_map(|branches| array_of(&branches));
        prop_oneof![
            3 => inner,
            1 => (select(vec!["$and", "$or", "$nor"]), branches).prop_map(|(name, branches)| one(name, branches)),
        ]
    })
    .prop_filter_map("a filter", |filter| Filter::parse(Doc::new(filter.as_value().bytes())).ok())
    .boxed()
}

/// Returns a document's keys in an index on this path alone. `None` if it cannot be indexed.
fn keys(path: &str, document: Doc<'_>) -> Option<Keys> {
    let pattern = doc! { path: 1 }.to_vec().unwrap();
    let mut keys = Keys::new();
    KeyPattern::parse(Doc::new(&pattern)).unwrap().keys(document, &mut keys).ok()?;
    Some(keys)
}

/// Filters that compare by an expression.
fn computed() -> BoxedStrategy<Filter> {
    let literal = |value: OwnedValue| one("$literal", value);
    let relation = select(vec!["$eq", "$lt", "$lte", "$gt", "$gte"]);
    let field = || random::path().prop_map(|path| of(format!("${path}")));
    let compared = (relation, field(), operand(), any::<bool>()).prop_map(move |(name, field, operand, is_turned)| {
        let operand = literal(operand);
        one(name, array_of(&if is_turned { [operand, field] } else { [field, operand] }))
    });
    let listed = (field(), vec(operand(), 0..3))
        .prop_map(move |(field, values)| one("$in", array_of(&[field, literal(array_of(&values))])));
    let single = prop_oneof![5 => compared, 1 => listed].boxed();
    let both = vec(single.clone(), 2).prop_map(|both| one("$and", array_of(&both)));
    prop_oneof![4 => single, 1 => both]
        .prop_filter_map("a filter", |expression| {
            let filter = one("$expr", expression);
            Filter::parse_with(Doc::new(filter.as_value().bytes()), &Bindings::new(0)).ok()
        })
        .boxed()
}

fn check(conjunct: &Node, document: Doc<'_>) -> Result<(), TestCaseError> {
    let matches = conjunct.matches(document);
    for term in conjunct.terms() {
        let Some(keys) = keys(term.path.as_str(), document) else { continue };
        let has_arrays = keys.multikey().iter().any(|arrays| *arrays != 0);
        if has_arrays && term.validity == Validity::WhereNotMultikey {
            continue;
        }
        let within = keys.iter().any(|(key, _)| term.intervals.contains(key));
        prop_assert!(within || !matches, "{conjunct} matches {document:?}, which has no key within {term:?}");
        let proves = match term.exact {
            Exactness::Never => false,
            Exactness::WhereNotMultikey => !has_arrays,
            Exactness::Always => true,
        };
        prop_assert!(matches || !within || !proves, "{conjunct} fails {document:?}, which has a key within {term:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn keys_are_within_the_bounds_of_matching_filters(filter in filter(), documents in vec(random::document(), 4)) {
        for document in &documents {
            let document = Doc::new(document);
            for conjunct in filter.conjuncts() {
                check(conjunct, document)?;
            }
            check(filter.root(), document)?;
        }
    }

    #[test]
    fn keys_are_within_the_bounds_of_matching_expressions(filter in computed(), documents in vec(random::document(), 8)) {
        for document in &documents {
            check(filter.root(), Doc::new(document))?;
        }
    }

    #[test]
    fn a_single_equality_has_the_key_and_the_path_of_the_only_term(
        name in select(vec!["a", "_id", "", "0", "a.b", "a.0"]),
        value in prop_oneof![
            operand(),
            Just(of(doc! { "$ref": "c", "$id": 1 })),
            operator().prop_map(|operator| document_of(&[operator])),
        ],
    ) {
        let is_operator = value.as_value().as_document().is_some_and(|document| {
            document.elements().next().is_some_and(|first| first.name.starts_with(b"$") && first.name != b"$ref")
        });
        let is_equality = !is_operator && value.as_value().kind() != Kind::Regex;
        let Ok(filter) = Filter::parse(Doc::new(one(name, value).as_value().bytes())) else { return Ok(()) };
        let Some(equality) = filter.single_equality() else {
            prop_assert!(!is_equality, "{filter}");
            return Ok(());
        };
        prop_assert_eq!(equality.path().as_str(), name, "{}", filter);
        prop_assert_eq!(filter.conjuncts().len(), 1, "{}", filter);
        let terms = filter.root().terms();
        let point = match terms.as_slice() {
            [term] if term.exact >= Exactness::WhereNotMultikey && term.path.as_str() == name => term.intervals.as_point(),
            _ => None,
        };
        let key = equality.key();
        prop_assert_eq!(key.as_deref(), point, "{} {:?}", filter, terms);
    }

    #[test]
    fn one_pass_agrees_with_each_condition(filter in filter(), documents in vec(random::document(), 4)) {
        for document in &documents {
            let document = Doc::new(document);
            let each = filter.conjuncts().iter().all(|conjunct| conjunct.matches(document));
            prop_assert_eq!(filter.matches(document), each, "{} of {:?}", filter, document);
            prop_assert_eq!(filter.positional(document, Ties::First).is_some(), each);
        }
    }

    #[test]
    fn implied_filters_match(a in filter(), b in filter(), documents in vec(random::document(), 4)) {
        prop_assert!(a.implies(&a), "{a} implies itself");
        if a.implies(&b) {
            for document in &documents {
                let document = Doc::new(document);
                prop_assert!(!a.matches(document) || b.matches(document), "{a} is said to imply {b}, not of {document:?}");
            }
        }
    }

    #[test]
    fn simple_implications_hold(
        (path, a, b) in (select(vec!["a", "a.b", "a.0"]), operator(), operator()),
        documents in vec(random::document(), 12),
    ) {
        let parse = |operator| Filter::parse(Doc::new(one(path, document_of(&[operator])).as_value().bytes()));
        let (Ok(a), Ok(b)) = (parse(a), parse(b)) else { return Ok(()) };
        if a.implies(&b) {
            for document in &documents {
                let document = Doc::new(document);
                prop_assert!(!a.matches(document) || b.matches(document), "{a} is said to imply {b}, not of {document:?}");
            }
        }
    }

    #[test]
    fn patterns_match_only_texts_with_their_prefix(
        tokens in vec(select(vec![
            "^", "^", "\\A", "a", "b", "a", ".", "*", "+", "?", "|", "(", ")", "(?:", "(?i)", "(?m)", "[ab]", "[^a]", "{0,1}", "{2}",
            "$", "\\Q", "\\E", "\\n", "\\", "[", "]", " ", "#",
        ]), 0..7),
        options in select(vec!["", "i", "m", "x", "s"]),
        texts in vec("[abAB\n]{0,4}", 8),
    ) {
        let filter = doc! { "a": { "$regex": tokens.concat(), "$options": options } };
        // Many of these are not valid patterns, which must be an error and not a panic.
        let Ok(filter) = Filter::parse(Doc::new(&filter.to_vec().unwrap())) else { return Ok(()) };
        for text in texts {
            let document = doc! { "a": text }.to_vec().unwrap();
            check(filter.root(), Doc::new(&document))?;
        }
    }
}
