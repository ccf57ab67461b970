//! Values for property tests.

use bson::{Binary, Bson, DateTime, Decimal128, JavaScriptCodeWithScope, Timestamp, doc, oid::ObjectId};
use proptest::prelude::*;

/// Generates any value. Values that are hard to write as text are frequent.
pub(crate) fn value() -> impl Strategy<Value = Bson> {
    let number = prop_oneof![
        any::<i32>().prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        any::<f64>().prop_map(Bson::Double),
        prop_oneof![Just(0.0), Just(-0.0), Just(f64::NAN), Just(f64::INFINITY), Just(1e22)].prop_map(Bson::Double),
        any::<[u8; 16]>().prop_map(|bytes| Bson::Decimal128(Decimal128::from_bytes(bytes))),
    ];
    let text = prop_oneof!["[-0-9.,:eE+T \"a{}\\[\\]()n]{0,12}", any::<String>()];
    let date = prop_oneof![any::<i64>(), -70_000_000_000_000..260_000_000_000_000_i64];
    let other = prop_oneof![
        Just(Bson::Null),
        Just(Bson::Undefined),
        Just(Bson::MinKey),
        Just(Bson::MaxKey),
        any::<bool>().prop_map(Bson::Boolean),
        date.prop_map(|millis| Bson::DateTime(DateTime::from_millis(millis))),
        any::<[u8; 12]>().prop_map(|bytes| Bson::ObjectId(ObjectId::from_bytes(bytes))),
        any::<(u32, u32)>().prop_map(|(time, increment)| Bson::Timestamp(Timestamp { time, increment })),
        // Not subtype 2, whose data begin with another length.
        (prop_oneof![Just(0_u8), 3..=255_u8], any::<Vec<u8>>())
            .prop_map(|(subtype, bytes)| Bson::Binary(Binary { subtype: subtype.into(), bytes })),
        ("[a-z/\\\\\"ä]{0,5}", "i?m?s?x?").prop_map(|(pattern, options)| {
            let text = |text: String| text.try_into().unwrap();
            Bson::RegularExpression(bson::Regex { pattern: text(pattern), options: text(options) })
        }),
        any::<String>().prop_map(Bson::Symbol),
        any::<String>().prop_map(Bson::JavaScriptCode),
        any::<String>().prop_map(|code| {
            Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code, scope: doc! { "a": 1_i64 } })
        }),
    ];
    let leaf = prop_oneof![number, text.prop_map(Bson::String), other];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Bson::Array),
            prop::collection::vec(("[a-z.]{1,3}", inner), 0..3)
                .prop_map(|fields| Bson::Document(fields.into_iter().collect())),
        ]
    })
}
