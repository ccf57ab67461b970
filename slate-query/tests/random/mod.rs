//! Random values of every type for property tests, biased towards the edge cases of orders and encodings.

#![allow(dead_code, reason = "each test file uses a part")]
#![allow(unreachable_pub, reason = "a test's own module")]

use proptest::{collection::vec, prelude::*, sample::select};
use slate_query::{
    number::{Decimal, MAX_COEFFICIENT, MAX_EXPONENT, MIN_EXPONENT, Sign},
    raw::{Kind, OwnedValue, Value, Writer},
};

fn owned(kind: Kind, bytes: &[u8]) -> OwnedValue {
    Value::new(kind, bytes).to_owned()
}

fn text_value(kind: Kind, text: &[u8]) -> OwnedValue {
    let length = i32::try_from(text.len() + 1).unwrap_or_default();
    owned(kind, &[&length.to_le_bytes()[..], text, &[0]].concat())
}

/// Integers near the limits of encodings: bytes, types, 2^53, zero.
pub fn integer() -> BoxedStrategy<i64> {
    let edges = vec![0, 1 << 7, 1 << 15, 1 << 31, 1 << 53, 1 << 54, 1 << 55, 1 << 62, i64::MAX, i64::MIN];
    let near = (select(edges), -3_i64..=3, any::<bool>()).prop_map(|(edge, by, negative)| {
        let int = edge.wrapping_add(by);
        if negative { int.wrapping_neg() } else { int }
    });
    prop_oneof![3 => -4_i64..=4, 3 => near, 1 => any::<i64>(), 1 => -70_000_i64..70_000].boxed()
}

/// Doubles of every class: NaN with payloads, infinities, zeros of both signs, subnormals, values near integers.
pub fn double() -> BoxedStrategy<f64> {
    #[expect(clippy::cast_precision_loss, reason = "any double will do")]
    let near = (integer(), -2_i64..=2).prop_map(|(int, ulps)| step(int as f64, ulps));
    let fraction = (integer(), 0_i32..60).prop_map(|(int, power)| {
        #[expect(clippy::cast_precision_loss, reason = "any double will do")]
        let int = int as f64;
        int / f64::from(power).exp2()
    });
    let special = select(vec![
        0.0,
        -0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
        0.1,
        0.5,
        1.5,
        -0.1,
        2.5,
        1e22,
        1e23,
        9_223_372_036_854_775_808.0,
        1.0,
    ]);
    let special = (special, -1_i64..=1).prop_map(|(double, ulps)| step(double, ulps));
    let nan = any::<u64>().prop_map(|payload| f64::from_bits(payload | 0x7ff8 << 48));
    prop_oneof![3 => near, 2 => fraction, 3 => special, 1 => any::<u64>().prop_map(f64::from_bits), 1 => nan].boxed()
}

fn step(double: f64, ulps: i64) -> f64 {
    if double.is_finite() { f64::from_bits(double.to_bits().wrapping_add_signed(ulps)) } else { double }
}

/// Decimals of every exponent and cohort, near doubles, near integers, and of random bits.
pub fn decimal_bits() -> BoxedStrategy<[u8; 16]> {
    let sign = select(vec![Sign::Positive, Sign::Negative]);
    let exponents = prop_oneof![
        4 => -40_i32..40,
        1 => MIN_EXPONENT..=MAX_EXPONENT,
        1 => -360_i32..-280,
        1 => 270_i32..320,
        1 => select(vec![MIN_EXPONENT, MAX_EXPONENT])
    ];
    let coefficients = prop_oneof![
        3 => 0_u128..200,
        2 => integer().prop_map(|int| u128::from(int.unsigned_abs())),
        1 => 0..=MAX_COEFFICIENT,
        1 => (0_u128..1000).prop_map(|below| MAX_COEFFICIENT - below),
        1 => (1_u128..100, 0_u32..33).prop_map(|(digits, zeros)| (digits * 10_u128.pow(zeros)).min(MAX_COEFFICIENT))
    ];
    let any_finite = (sign, coefficients, exponents)
        .prop_map(|(sign, coefficient, exponent)| Decimal::Finite { sign, coefficient, exponent }.to_bits());
    let near = (double(), -1_i8..=1, 1_usize..34).prop_map(|(double, by, digits)| {
        let decimal = format!("{double:.digits$e}").parse::<Decimal>().unwrap_or(Decimal::Nan);
        match decimal {
            Decimal::Finite { sign, coefficient, exponent } => {
                let coefficient = match by {
                    0 => coefficient,
                    1 => (coefficient + 1).min(MAX_COEFFICIENT),
                    _ => coefficient.saturating_sub(1),
                };
                Decimal::Finite { sign, coefficient, exponent }
            }
            Decimal::Nan | Decimal::Infinite(_) => decimal,
        }
        .to_bits()
    });
    let padded = (integer(), 0_u32..15).prop_map(|(int, zeros)| {
        let sign = if int < 0 { Sign::Negative } else { Sign::Positive };
        let coefficient = u128::from(int.unsigned_abs()) * 10_u128.pow(zeros);
        let exponent = -i32::try_from(zeros).unwrap_or_default();
        Decimal::rounded(sign, coefficient, exponent).to_bits()
    });
    prop_oneof![4 => any_finite, 4 => near, 2 => padded, 1 => any::<[u8; 16]>()].boxed()
}

/// Numbers of the four types.
pub fn number() -> BoxedStrategy<OwnedValue> {
    #[expect(clippy::cast_possible_truncation, reason = "any int32 will do")]
    let int32 = integer().prop_map(|int| owned(Kind::Int32, &(int as i32).to_le_bytes()));
    prop_oneof![
        int32,
        integer().prop_map(|int| owned(Kind::Int64, &int.to_le_bytes())),
        double().prop_map(|double| owned(Kind::Double, &double.to_le_bytes())),
        decimal_bits().prop_map(|bits| owned(Kind::Decimal128, &bits)),
    ]
    .boxed()
}

/// Texts, some with NULs and control characters.
pub fn text() -> BoxedStrategy<String> {
    let small = vec(select(vec!['a', 'b', '\0', '\u{1}', '\u{2}', '\u{3}', 'é', '\u{10ffff}']), 0..4)
        .prop_map(|characters| characters.into_iter().collect());
    prop_oneof![3 => small, 1 => any::<String>()].boxed()
}

fn name() -> BoxedStrategy<String> {
    text().prop_map(|text| text.replace('\0', "")).boxed()
}

/// Values other than documents and arrays (except in the scope of a code).
pub fn scalar() -> BoxedStrategy<OwnedValue> {
    let bytes = vec(select(vec![0_u8, 1, 2, 0x7f, 0xff]), 0..4);
    let binary = (select(vec![0_u8, 2, 4, 0x80]), bytes).prop_map(|(subtype, payload)| {
        let inner = i32::try_from(payload.len()).unwrap_or_default().to_le_bytes();
        let payload = if subtype == 2 { [&inner[..], &payload].concat() } else { payload };
        let length = i32::try_from(payload.len()).unwrap_or_default();
        owned(Kind::Binary, &[&length.to_le_bytes()[..], &[subtype], &payload].concat())
    });
    let id = vec(select(vec![0_u8, 1, 0xff]), 12);
    let pointer = (text(), id.clone()).prop_map(|(namespace, id)| {
        let length = i32::try_from(namespace.len() + 1).unwrap_or_default();
        owned(Kind::DbPointer, &[&length.to_le_bytes()[..], namespace.as_bytes(), &[0], &id].concat())
    });
    let constant = select(vec![Kind::MinKey, Kind::Undefined, Kind::Null, Kind::Null, Kind::MaxKey])
        .prop_map(|kind| owned(kind, &[]));
    let regex = (name(), select(vec!["", "i", "im"]))
        .prop_map(|(pattern, options)| owned(Kind::Regex, format!("{pattern}\0{options}\0").as_bytes()));
    prop_oneof![
        6 => number(),
        3 => text().prop_map(|text| text_value(Kind::String, text.as_bytes())),
        1 => text().prop_map(|text| text_value(Kind::Symbol, text.as_bytes())),
        1 => text().prop_map(|text| text_value(Kind::Code, text.as_bytes())),
        2 => constant,
        1 => binary,
        1 => id.prop_map(|id| owned(Kind::ObjectId, &id)),
        1 => any::<bool>().prop_map(|boolean| owned(Kind::Boolean, &[u8::from(boolean)])),
        1 => integer().prop_map(|millis| owned(Kind::DateTime, &millis.to_le_bytes())),
        1 => integer().prop_map(|timestamp| owned(Kind::Timestamp, &timestamp.to_le_bytes())),
        1 => regex,
        1 => pointer,
    ]
    .boxed()
}

/// Returns a document with these fields.
pub fn document_of(fields: &[(String, OwnedValue)]) -> Vec<u8> {
    let mut writer = Writer::new();
    fields.iter().for_each(|(name, value)| writer.append(name.as_bytes(), value.as_value()));
    writer.finish()
}

fn array_of(values: &[OwnedValue]) -> OwnedValue {
    let fields: Vec<_> =
        values.iter().enumerate().map(|(position, value)| (position.to_string(), value.clone())).collect();
    owned(Kind::Array, &document_of(&fields))
}

fn with_scope(code: &str, scope: &[u8]) -> OwnedValue {
    let length = |length: usize| i32::try_from(length).unwrap_or_default().to_le_bytes();
    let total = code.len() + scope.len() + 9;
    let bytes = [&length(total)[..], &length(code.len() + 1), code.as_bytes(), &[0], scope].concat();
    owned(Kind::CodeWithScope, &bytes)
}

/// Values of every type and nesting, including arrays with wrong element names.
pub fn value() -> BoxedStrategy<OwnedValue> {
    scalar()
        .prop_recursive(4, 24, 4, |inner| {
            let fields = vec((name(), inner.clone()), 0..4).prop_map(|fields| document_of(&fields));
            prop_oneof![
                4 => fields.clone().prop_map(|bytes| owned(Kind::Document, &bytes)),
                4 => vec(inner.clone(), 0..4).prop_map(|values| array_of(&values)),
                1 => fields.clone().prop_map(|bytes| owned(Kind::Array, &bytes)),
                1 => (text(), fields).prop_map(|(code, scope)| with_scope(&code, &scope)),
                1 => (inner, 12_usize..15).prop_map(|(value, length)| array_of(&vec![value; length])),
            ]
        })
        .boxed()
}

/// Documents with few field names, so that paths such as `a.b.0` lead to values, arrays and missing fields.
pub fn document() -> BoxedStrategy<Vec<u8>> {
    let leaf = prop_oneof![
        3 => (-2_i32..3).prop_map(|int| owned(Kind::Int32, &int.to_le_bytes())),
        1 => (-2_i32..3).prop_map(|int| owned(Kind::Double, &f64::from(int).to_le_bytes())),
        1 => scalar()
    ];
    let names = || select(vec!["a", "b", "c", "0", "1"]).prop_map(String::from);
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        let names = select(vec!["a", "b", "c", "0", "1"]).prop_map(String::from);
        prop_oneof![
            vec((names, inner.clone()), 0..4).prop_map(|fields| owned(Kind::Document, &document_of(&distinct(fields)))),
            vec(inner, 0..4).prop_map(|values| array_of(&values)),
        ]
    });
    vec((names(), value), 0..5).prop_map(|fields| document_of(&distinct(fields))).boxed()
}

fn distinct(mut fields: Vec<(String, OwnedValue)>) -> Vec<(String, OwnedValue)> {
    let mut seen = std::collections::BTreeSet::new();
    fields.retain(|(name, _)| seen.insert(name.clone()));
    fields
}

/// Paths into the documents of [`document`].
pub fn path() -> BoxedStrategy<String> {
    vec(select(vec!["a", "b", "c", "a", "b", "0", "1"]), 1..4).prop_map(|names| names.join(".")).boxed()
}
