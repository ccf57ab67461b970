//! Key bytes sort as values do, are self-delimiting, and decode to the encoded value.

mod random;

use std::cmp::Ordering;

use bson::Bson;
use proptest::prelude::*;
use slate_query::{
    interval::{Interval, Place, bracket_interval, prefix_interval},
    key::{Decoded, Direction, Overwrite, TypeBits, TypeReader, decode, encode, encode_directed, encode_typed, skip},
    number::Number,
    order::{bracket, compare, equal},
    raw::{Kind, OwnedValue, Value},
};

fn encoded(value: Value<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode(value, &mut out);
    out
}

fn directed(value: Value<'_>, direction: Direction) -> Vec<u8> {
    let mut out = Vec::new();
    encode_directed(Some(value), direction, &mut out);
    out
}

fn direction() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Ascending), Just(Direction::Descending)]
}

fn owned(value: impl Into<Bson>) -> OwnedValue {
    OwnedValue::from(value.into())
}

/// Pairs of values that are often equal or close.
fn pair() -> impl Strategy<Value = (OwnedValue, OwnedValue)> {
    prop_oneof![
        2 => (random::value(), random::value()),
        3 => (random::number(), random::number()),
        1 => (random::scalar(), random::scalar()),
        1 => random::value().prop_map(|value| (value.clone(), value)),
    ]
}

/// Decimals from 2^128 on that have a double's key, with few digits before their zeros.
#[test]
fn large_decimals_that_are_doubles_decode_to_themselves() {
    let of = |mantissa: u128, twos: u32, tens: u32| format!("{}E+{tens}", mantissa << twos);
    let texts = [
        "4.611686018427387904E+38".to_owned(),
        "-4.611686018427387904E+38".to_owned(),
        of(1, 107, 20),
        of(3, 100, 22),
        of(1, 62, 21),
        of(5, 90, 18),
        "1E+22".to_owned(),
        "1E+39".to_owned(),
    ];
    for text in texts {
        let value = owned(text.parse::<bson::Decimal128>().unwrap());
        let (mut key, mut bits) = (Vec::new(), TypeBits::new());
        encode_typed(Some(value.as_value()), &mut key, &mut bits);
        let decoded = decode(&mut &key[..], Direction::Ascending, &mut TypeReader::new(bits.as_bytes()));
        assert_eq!(decoded, Some(Decoded::Value(value)), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn keys_sort_as_values_compare((a, b) in pair()) {
        let (a, b) = (a.as_value(), b.as_value());
        prop_assert_eq!(encoded(a).cmp(&encoded(b)), compare(a, b), "{:?} and {:?}", a, b);
        prop_assert_eq!(compare(a, b), compare(b, a).reverse());
    }

    #[test]
    fn order_is_transitive(a in random::number(), b in random::number(), c in random::number()) {
        let mut sorted = [a, b, c];
        sorted.sort_by(|a, b| compare(a.as_value(), b.as_value()));
        let [low, _, high] = &sorted;
        prop_assert_ne!(compare(low.as_value(), high.as_value()), Ordering::Greater);
    }

    #[test]
    fn decoding_gives_back_the_identical_value(value in random::value(), direction in direction()) {
        let (mut key, mut bits) = (Vec::new(), TypeBits::new());
        encode_typed(Some(value.as_value()), &mut key, &mut bits);
        prop_assert_eq!(&key, &encoded(value.as_value()));
        direction.apply(&mut key);
        let mut rest = &key[..];
        let decoded = decode(&mut rest, direction, &mut TypeReader::new(bits.as_bytes()));
        prop_assert_eq!(decoded, Some(Decoded::Value(value)));
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn components_decode_in_order_and_the_id_last(
        values in prop::collection::vec((prop::option::of(random::value()), direction()), 0..5),
        id in random::scalar(),
    ) {
        let (mut key, mut bits) = (Vec::new(), TypeBits::new());
        for (value, direction) in &values {
            let start = key.len();
            encode_typed(value.as_ref().map(OwnedValue::as_value), &mut key, &mut bits);
            direction.apply(&mut key[start..]);
        }
        let mut id_bits = TypeBits::new();
        encode_typed(Some(id.as_value()), &mut key, &mut id_bits);
        let mut joined = Vec::new();
        slate_query::key::join(bits.as_bytes(), id_bits.as_bytes(), &mut joined);

        let mut rest = &key[..];
        let mut reader = TypeReader::new(&joined);
        for (value, direction) in values {
            let expected = value.map_or(Decoded::Missing, Decoded::Value);
            prop_assert_eq!(skip(rest, direction).is_some(), true);
            prop_assert_eq!(decode(&mut rest, direction, &mut reader), Some(expected));
        }
        reader.next_part();
        prop_assert_eq!(decode(&mut rest, Direction::Ascending, &mut reader), Some(Decoded::Value(id)));
    }

    /// Overwriting another value gives this value or fails without a change.
    #[test]
    fn replacing_a_value_in_place_is_all_or_nothing(
        (old, new) in prop_oneof![
            pair(),
            (any::<i64>(), any::<i64>()).prop_map(|(a, b)| (owned(a), owned(b))),
            ("[ab\0\u{1}]{0,3}", "[ab\0\u{1}]{0,3}").prop_map(|(a, b)| (owned(a), owned(b))),
        ],
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let (mut key, mut bits) = (Vec::new(), TypeBits::new());
        encode_typed(Some(new.as_value()), &mut key, &mut bits);
        if let Some((place, byte)) = damage {
            let place = place.index(key.len());
            key[place] = byte;
        }
        let (kind, bytes) = (old.as_value().kind(), old.as_value().bytes());
        let mut place = bytes.to_vec();
        let decoded = decode(&mut &key[..], Direction::Ascending, &mut TypeReader::new(bits.as_bytes()));
        match Overwrite::new(kind, bits.as_bytes()).and_then(|overwrite| overwrite.put(&key, &mut place)) {
            Some(()) => prop_assert_eq!(decoded, Some(Decoded::Value(Value::new(kind, &place).to_owned()))),
            None => {
                prop_assert_eq!(&place, bytes);
                // The least int64 has another kind of key.
                let plain = matches!(kind, Kind::Int32 | Kind::Int64 | Kind::ObjectId) && new != owned(i64::MIN);
                prop_assert!(damage.is_some() || !plain || new.as_value().kind() != kind, "{:?} {:?}", old, new);
            }
        }
    }

    #[test]
    fn no_key_is_a_prefix_of_another((a, b) in pair(), direction in direction()) {
        let (x, y) = (directed(a.as_value(), direction), directed(b.as_value(), direction));
        prop_assert_eq!(y.starts_with(&x), equal(a.as_value(), b.as_value()));
    }

    #[test]
    fn skipping_consumes_exactly_one_value(a in random::value(), b in random::value(), direction in direction()) {
        let mut key = directed(a.as_value(), direction);
        let length = key.len();
        key.extend(directed(b.as_value(), Direction::Ascending));
        prop_assert_eq!(skip(&key, direction), Some(length));
    }

    #[test]
    fn compound_keys_sort_as_tuples(
        (a, b) in pair(), (c, d) in pair(), directions in (direction(), direction()),
    ) {
        let key = |x: &OwnedValue, y: &OwnedValue| {
            [directed(x.as_value(), directions.0), directed(y.as_value(), directions.1)].concat()
        };
        let order = |x: &OwnedValue, y: &OwnedValue, direction| match direction {
            Direction::Ascending => compare(x.as_value(), y.as_value()),
            Direction::Descending => compare(y.as_value(), x.as_value()),
        };
        let expected = order(&a, &b, directions.0).then_with(|| order(&c, &d, directions.1));
        prop_assert_eq!(key(&a, &c).cmp(&key(&b, &d)), expected);
    }

    #[test]
    fn no_byte_after_a_complete_value_or_a_text_prefix_is_0xff(
        value in random::value(), direction in direction(),
    ) {
        let key = directed(value.as_value(), direction);
        prop_assert!((0x02..=0xfd).contains(&key[0]));
        if value.as_value().as_str().is_some() {
            prop_assert!(key.iter().all(|&byte| byte != 0xff && byte != 0));
        }
    }

    #[test]
    fn decoding_garbage_does_not_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        bits in prop::collection::vec(any::<u8>(), 0..20),
        direction in direction(),
    ) {
        let _ = skip(&bytes, direction);
        let _ = decode(&mut &bytes[..], direction, &mut TypeReader::new(&bits));
    }

    #[test]
    fn decoding_damaged_keys_does_not_panic(
        value in random::value(), place in any::<prop::sample::Index>(), byte in any::<u8>(),
        bits in prop::collection::vec(any::<u8>(), 0..6),
    ) {
        let (mut key, mut kept) = (Vec::new(), TypeBits::new());
        encode_typed(Some(value.as_value()), &mut key, &mut kept);
        let _ = decode(&mut &key[..], Direction::Ascending, &mut TypeReader::new(&bits));
        let place = place.index(key.len());
        key[place] = byte;
        let _ = skip(&key, Direction::Ascending);
        let _ = decode(&mut &key[..], Direction::Ascending, &mut TypeReader::new(kept.as_bytes()));
    }

    #[test]
    fn the_interval_of_a_class_contains_exactly_its_values((a, b) in pair(), direction in direction()) {
        let interval = bracket_interval(bracket(a.as_value().kind()));
        let interval = match direction {
            Direction::Ascending => interval,
            Direction::Descending => interval.inverted(),
        };
        let mut key = directed(b.as_value(), direction);
        // For every possible next component.
        key.push(0xfd);
        let within = *interval.low().to_bytes(&[]) <= *key && *key < *interval.high().to_bytes(&[]);
        prop_assert_eq!(within, bracket(a.as_value().kind()) == bracket(b.as_value().kind()));
    }

    #[test]
    fn the_interval_of_a_prefix_contains_exactly_its_texts(
        prefix in random::text(), text in random::text(), direction in direction(),
    ) {
        let interval = prefix_interval(prefix.as_bytes());
        let interval = match direction {
            Direction::Ascending => interval,
            Direction::Descending => interval.inverted(),
        };
        for text in [text.clone(), format!("{prefix}{text}"), prefix.clone()] {
            let value = OwnedValue::from(bson::Bson::String(text.clone()));
            let mut key = directed(value.as_value(), direction);
            // For every possible next component.
            key.push(0xa0);
            let within = *interval.low().to_bytes(&[]) <= *key && *key < *interval.high().to_bytes(&[]);
            prop_assert_eq!(within, text.starts_with(&prefix), "{:?} {:?}", prefix, text);
        }
    }

    #[test]
    fn a_point_contains_exactly_the_equal_values((a, b) in pair(), direction in direction()) {
        let interval = Interval::point(directed(a.as_value(), direction));
        let mut key = directed(b.as_value(), direction);
        key.push(0xfd);
        let within = *interval.low().to_bytes(&[]) <= *key && *key < *interval.high().to_bytes(&[]);
        prop_assert_eq!(within, equal(a.as_value(), b.as_value()));
    }

    #[test]
    fn a_point_is_distinguished_from_other_intervals(value in random::value(), direction in direction()) {
        let key = directed(value.as_value(), direction);
        let point = Interval::point(key.clone());
        prop_assert_eq!(point.as_point(), Some(&key[..]));
    }

    #[test]
    fn places_sort_as_their_bytes(
        a in prop::collection::vec(prop::sample::select(vec![0_u8, 1, 0xff]), 0..4),
        b in prop::collection::vec(prop::sample::select(vec![0_u8, 1, 0xff]), 0..4),
    ) {
        for x in [Place::before(a.clone()), Place::after(a)] {
            for y in [Place::before(b.clone()), Place::after(b.clone())] {
                prop_assert_eq!(x.cmp(&y), (*x.to_bytes(&[])).cmp(&*y.to_bytes(&[])));
                prop_assert_eq!(x == y, x.to_bytes(&[]) == y.to_bytes(&[]));
            }
        }
    }

    #[test]
    fn decimals_decode_and_encode_to_the_same_bits(bits in random::decimal_bits()) {
        use slate_query::number::Decimal;
        let decimal = Decimal::from_bits(bits);
        let again = Decimal::from_bits(decimal.to_bits());
        prop_assert_eq!(decimal, again);
        prop_assert_eq!(again.to_bits(), decimal.to_bits());
        if let Decimal::Finite { coefficient: 1.., .. } = decimal {
            let text = decimal.to_string();
            prop_assert_eq!(text.parse::<Decimal>().unwrap().to_bits(), bits, "{}", text);
            prop_assert_eq!(bson::Decimal128::from_bytes(bits).to_string(), text);
        }
    }

    #[test]
    fn a_double_s_exact_digits_equal_it(double in random::double()) {
        // A decimal of 34 digits represents a double exactly only if its expansion is not longer.
        let text = format!("{double:e}");
        if let (Ok(decimal), true) = (text.parse(), double.is_finite()) {
            let nearest = Number::Decimal(decimal).to_f64();
            prop_assert_eq!(nearest.to_bits(), double.to_bits());
        }
        if double.is_finite() {
            let exact = format!("{double:.1100}");
            let rounded: slate_query::number::Decimal = exact.parse().unwrap();
            // After rounding to 34 digits, the remaining digits decide on which side it is.
            let order = Number::Decimal(rounded).cmp(&Number::Double(double));
            let digits: String = exact.chars().filter(char::is_ascii_digit).collect();
            let digits = digits.trim_start_matches('0');
            let tail = digits.get(34..).unwrap_or("").trim_end_matches('0');
            prop_assert_eq!(order == Ordering::Equal, tail.is_empty(), "{}", double);
        }
    }
}

#[test]
fn common_values_need_no_type_bits_and_few_bytes() {
    use bson::{Bson, oid::ObjectId};
    for (value, length) in [
        (Bson::Int32(0), 1),
        (Bson::Int32(63), 2),
        (Bson::Int32(-127), 2),
        (Bson::Int32(16383), 3),
        (Bson::Int64(1 << 40), 7),
        (Bson::Double(0.25), 9),
        (Bson::Double(12.5), 9),
        (Bson::String("abc".into()), 5),
        (Bson::Null, 1),
        (Bson::Boolean(true), 1),
        (Bson::ObjectId(ObjectId::from_bytes([7; 12])), 13),
        (Bson::Decimal128("19.99".parse().unwrap()), 10),
    ] {
        let (mut key, mut bits) = (Vec::new(), TypeBits::new());
        encode_typed(Some(OwnedValue::from(&value).as_value()), &mut key, &mut bits);
        assert_eq!((key.len(), bits.as_bytes()), (length, &[][..]), "{value}");
    }
}

#[test]
fn the_examples_in_the_format_description_are_correct() {
    use bson::Bson;
    for (value, key) in [
        (Bson::Int32(5), "2e0a"),
        (Bson::Int32(-5), "2af5"),
        (Bson::Int32(300), "2f0258"),
        (Bson::Double(2.5), "2e0580000000000000"),
        (Bson::Decimal128("19.99".parse().unwrap()), "2e27fd70a3d70a3d71c6"),
        (Bson::String("a\0b\u{1}".into()), "4061020262020301"),
    ] {
        let bytes = encoded(OwnedValue::from(&value).as_value());
        assert_eq!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), key, "{value}");
    }
}

#[test]
fn numbers_compare_by_exact_value_across_types() {
    use bson::Bson;
    let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
    let ascending = [
        vec![Bson::Double(f64::NAN), decimal("NaN")],
        vec![Bson::Double(f64::NEG_INFINITY), decimal("-Infinity")],
        vec![decimal("-9E6144")],
        vec![Bson::Double(f64::MIN)],
        vec![Bson::Int64(i64::MIN), Bson::Double(-9_223_372_036_854_775_808.0), decimal("-9223372036854775808")],
        vec![Bson::Int32(-1), Bson::Double(-1.0), decimal("-1.000")],
        vec![Bson::Double(-5e-324)],
        vec![decimal("-1E-6176")],
        vec![Bson::Int32(0), Bson::Double(-0.0), decimal("-0E+100"), decimal("0.00")],
        vec![decimal("1E-6176")],
        vec![Bson::Double(5e-324)],
        vec![decimal("0.1")],
        vec![Bson::Double(0.1)],
        vec![Bson::Double(0.5), decimal("0.50")],
        vec![Bson::Double(9_007_199_254_740_992.0), Bson::Int64(9_007_199_254_740_992)],
        vec![Bson::Int64(9_007_199_254_740_993), decimal("9007199254740993")],
        vec![decimal("9007199254740993.5")],
        vec![Bson::Double(9_007_199_254_740_994.0)],
        vec![Bson::Int64(i64::MAX), decimal("9223372036854775807")],
        vec![decimal("9223372036854775807.9")],
        vec![Bson::Double(9_223_372_036_854_775_808.0)],
        vec![Bson::Double(f64::MAX)],
        vec![decimal("1E6144")],
        vec![Bson::Double(f64::INFINITY), decimal("Infinity")],
    ];
    for (place, left) in ascending.iter().enumerate() {
        for (other, right) in ascending.iter().enumerate() {
            for (a, b) in left.iter().flat_map(|a| right.iter().map(move |b| (a, b))) {
                let (x, y) = (OwnedValue::from(a), OwnedValue::from(b));
                assert_eq!(compare(x.as_value(), y.as_value()), place.cmp(&other), "{a} and {b}");
            }
        }
    }
}

#[test]
fn types_are_ordered_as_mongodb_orders_them() {
    use bson::{Bson, doc};
    let ascending = [
        Bson::MinKey,
        Bson::Undefined,
        Bson::Null,
        Bson::Int32(5),
        Bson::String("a".into()),
        Bson::Symbol("b".into()),
        Bson::Document(doc! {}),
        Bson::Document(doc! {"a": "x"}),
        Bson::Document(doc! {"b": "x"}),
        // The class of a document's first value sorts before its name.
        Bson::Document(doc! {"a": {}}),
        Bson::Array(vec![]),
        Bson::Array(vec![Bson::Int32(1)]),
        Bson::Array(vec![Bson::Int32(1), Bson::Null]),
        Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: vec![9] }),
        Bson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![0, 0] }),
        Bson::ObjectId(bson::oid::ObjectId::from_bytes([0; 12])),
        Bson::Boolean(false),
        Bson::Boolean(true),
        Bson::DateTime(bson::DateTime::from_millis(-1)),
        Bson::DateTime(bson::DateTime::from_millis(0)),
        Bson::Timestamp(bson::Timestamp { time: 0, increment: 1 }),
        Bson::Timestamp(bson::Timestamp { time: u32::MAX, increment: 1 }),
        Bson::RegularExpression(bson::Regex { pattern: "a".try_into().unwrap(), options: "".try_into().unwrap() }),
        Bson::JavaScriptCode("a".into()),
        Bson::JavaScriptCodeWithScope(bson::JavaScriptCodeWithScope { code: "a".into(), scope: doc! {} }),
        Bson::MaxKey,
    ];
    for (place, a) in ascending.iter().enumerate() {
        for (other, b) in ascending.iter().enumerate() {
            let (x, y) = (OwnedValue::from(a), OwnedValue::from(b));
            assert_eq!(compare(x.as_value(), y.as_value()), place.cmp(&other), "{a} and {b}");
        }
    }
}

#[test]
fn the_deepest_documents_are_encoded_and_compared() {
    use slate_query::raw::{Doc, Kind, Writer};
    let mut writer = Writer::new();
    (0..200).for_each(|_| writer.open_document(b"a"));
    let bytes = writer.finish();
    let value = Value::new(Kind::Document, Doc::new(&bytes).bytes());
    assert!(equal(value, value));
    let key = encoded(value);
    assert_eq!(skip(&key, Direction::Ascending), Some(key.len()));
    let decoded = decode(&mut &key[..], Direction::Ascending, &mut TypeReader::new(&[]));
    assert_eq!(decoded, Some(Decoded::Value(value.to_owned())));
    // Deeper nesting than any document can have is damage; it must not overflow the stack.
    let endless = vec![0x50; 1 << 20];
    assert_eq!(skip(&endless, Direction::Ascending), None);
    assert_eq!(decode(&mut &endless[..], Direction::Ascending, &mut TypeReader::new(&[])), None);
}
