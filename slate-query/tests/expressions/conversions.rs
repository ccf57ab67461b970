//! Texts, binaries and conversions.

use bson::{Bson, DateTime, bson, doc};

use super::{check, refused};

#[test]
fn strings_and_conversions() {
    check(
        doc! { "s": "Añb", "p": " x ", "n": null },
        &[
            (bson!({ "$concat": ["$s", "!"] }), bson!("Añb!")),
            (bson!({ "$toUpper": "$s" }), bson!("AñB")),
            (bson!({ "$strLenCP": "$s" }), bson!(3)),
            (bson!({ "$strLenBytes": "$s" }), bson!(4)),
            (bson!({ "$substrCP": ["$s", 1, 2] }), bson!("ñb")),
            (bson!({ "$substrBytes": ["$s", 0, 1] }), bson!("A")),
            (bson!({ "$indexOfCP": ["$s", "b"] }), bson!(2)),
            (bson!({ "$indexOfBytes": ["$s", "b"] }), bson!(3)),
            (bson!({ "$split": ["a,b", ","] }), bson!(["a", "b"])),
            (bson!({ "$trim": { "input": "$p" } }), bson!("x")),
            (bson!({ "$ltrim": { "input": "xxa", "chars": "x" } }), bson!("a")),
            (bson!({ "$replaceAll": { "input": "aba", "find": "a", "replacement": "c" } }), bson!("cbc")),
            (bson!({ "$toInt": "12" }), bson!(12)),
            (bson!({ "$toDouble": true }), bson!(1.0)),
            (bson!({ "$toString": 1.5 }), bson!("1.5")),
            (
                bson!({ "$toDate": "2024-01-02T03:04:05Z" }),
                DateTime::parse_rfc3339_str("2024-01-02T03:04:05Z").unwrap().into(),
            ),
            (bson!({ "$toString": { "$toDate": 0_i64 } }), bson!("1970-01-01T00:00:00.000Z")),
            (bson!({ "$convert": { "input": "x", "to": "int", "onError": "no" } }), bson!("no")),
            (bson!({ "$type": "$none" }), bson!("missing")),
            (bson!({ "$strcasecmp": ["a", "B"] }), bson!(-1)),
            (bson!({ "$getField": { "field": "k.l", "input": { "$literal": { "k.l": 1 } } } }), bson!(1)),
            (bson!({ "$setField": { "field": "k", "input": { "a": 1 }, "value": 2 } }), bson!({ "a": 1, "k": 2 })),
        ],
    );
    refused(
        doc! { "s": "é" },
        &[
            (bson!({ "$toInt": "x" }), 241),
            (bson!({ "$toDecimal": "1E6145" }), 241),
            (bson!({ "$toDecimal": "-1E-6177" }), 241),
            (bson!({ "$convert": { "input": 1, "to": "missing" } }), 241),
            (bson!({ "$convert": { "input": 1, "to": 0 } }), 241),
            (bson!({ "$substrBytes": ["$s", 1, 1] }), 28656),
            (bson!({ "$concat": [1] }), 16702),
        ],
    );
}

#[test]
fn numbers_and_matches_are_found_in_text_as_in_mongodb() {
    let found = |text: &str, place: i32| bson!({ "match": text, "idx": place, "captures": [] });
    check(
        doc! {},
        &[
            (bson!({ "$toDouble": "+0x1.8p1" }), bson!(3.0)),
            (bson!({ "$regexFindAll": { "input": "ab", "regex": "" } }), bson!([found("", 0), found("", 1)])),
            (bson!({ "$regexFindAll": { "input": "", "regex": "" } }), bson!([found("", 0)])),
            (bson!({ "$regexFindAll": { "input": "ab", "regex": "b" } }), bson!([found("b", 1)])),
            (
                bson!({ "$regexFind": { "input": "john@example.com", "regex": "^(?<user>[a-z]+)@(?:www\\.)?([a-z]+)(:\\d+)?" } }),
                bson!({ "match": "john@example", "idx": 0, "captures": ["john", "example", null] }),
            ),
            (
                bson!({ "$regexFindAll": { "input": "a1b2", "regex": "([a-z])(\\d)" } }),
                bson!([{ "match": "a1", "idx": 0, "captures": ["a", "1"] }, { "match": "b2", "idx": 2, "captures": ["b", "2"] }]),
            ),
        ],
    );
    let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
    let below = ["1E-400", "-1E-330", "1E-320"].map(|text| (bson!({ "$toDouble": (decimal(text)) }), 241));
    refused(doc! {}, &below);
    check(
        doc! {},
        &[
            (bson!({ "$toDouble": (decimal("-0E-400")) }), bson!(0.0)),
            (bson!({ "$toDouble": (decimal("1E-307")) }), bson!(1e-307)),
            (bson!({ "$toDouble": (decimal("Infinity")) }), bson!(f64::INFINITY)),
            (bson!({ "$toDouble": 1e-320 }), bson!(1e-320)),
        ],
    );
    refused(doc! {}, &[(bson!({ "$toDouble": "1e-400" }), 241), (bson!({ "$toDouble": "0x" }), 241)]);
}

/// The first values are those of MongoDB's own tests. The others were computed with another implementation of MD5.
#[test]
fn hashes_of_index_keys_are_those_of_mongodb() {
    let oid = bson::oid::ObjectId::parse_str("47cc67093475061e3d95369d").unwrap();
    let mongodb = [
        (bson!("hashThisStringLiteral"), -5_776_344_739_422_278_694_i64),
        (bson!(123), -6_548_868_637_522_515_075),
        (Bson::Timestamp(bson::Timestamp { time: 0, increment: 0 }), -7_867_208_682_377_458_672),
        (Bson::ObjectId(oid), 1_576_265_281_381_834_298),
        (Bson::DateTime(DateTime::from_millis(0)), -1_178_696_894_582_842_035),
        (bson!("$missing"), 2_338_878_944_348_059_895),
        (Bson::Null, 2_338_878_944_348_059_895),
        (bson!({ "$pow": [2, 4] }), 2_598_032_665_634_823_220),
        (Bson::Undefined, 40_158_834_000_849_533),
    ];
    let scope =
        Bson::JavaScriptCodeWithScope(bson::JavaScriptCodeWithScope { code: "x".into(), scope: doc! { "y": 1 } });
    let others = [
        (bson!({ "a": [1, 2.9] }), 6_341_073_278_760_501_284),
        (bson!({ "$literal": { "a": [1.5, 2_i64] } }), 6_341_073_278_760_501_284),
        (bson!(9_223_372_036_854_775_808.0), 4_532_067_210_535_695_462),
        (Bson::Decimal128("9223372036854775808".parse().unwrap()), 921_523_596_458_303_250),
        (bson!(f64::INFINITY), 921_523_596_458_303_250),
        (bson!(f64::NAN), 4_854_801_880_128_277_513),
        (Bson::Decimal128("0.5".parse().unwrap()), 4_854_801_880_128_277_513),
        (bson!(-0.9), 4_854_801_880_128_277_513),
        (scope, -7_997_191_720_256_297_171),
        (bson!(true), 6_405_873_908_747_105_701),
    ];
    for (operand, hash) in mongodb.into_iter().chain(others) {
        check(doc! {}, &[(bson!({ "$toHashedIndexKey": operand }), Bson::Int64(hash))]);
    }
}

fn binary(subtype: u8, bytes: &[u8]) -> Bson {
    bson::Binary { subtype: subtype.into(), bytes: bytes.to_vec() }.into()
}

#[test]
fn binaries_are_converted_from_and_to_numbers_and_text() {
    let to =
        |input: Bson, to: Bson, format: &str| bson!({ "$convert": { "input": input, "to": to, "format": format } });
    let ordered =
        |input: Bson, to: &str, order: &str| bson!({ "$convert": { "input": input, "to": to, "byteOrder": order } });
    let uuid = || bson!({ "type": "binData", "subtype": 4 });
    let id: Vec<u8> = (1..=16).collect();
    let id_text = "01020304-0506-0708-090a-0b0c0d0e0f10";
    check(
        doc! {},
        &[
            (to("aGk=".into(), "binData".into(), "base64"), binary(0, b"hi")),
            (to("_-8".into(), "binData".into(), "base64url"), binary(0, &[255, 239])),
            (to("_-8=".into(), "binData".into(), "base64url"), binary(0, &[255, 239])),
            (to("6869".into(), 5.into(), "hex"), binary(0, b"hi")),
            (to("é".into(), "binData".into(), "utf8"), binary(0, "é".as_bytes())),
            (to(id_text.into(), uuid(), "auto"), binary(4, &id)),
            (bson!({ "$toUUID": id_text }), binary(4, &id)),
            (to(binary(4, &id), "string".into(), "auto"), id_text.into()),
            (to(binary(0, b"hi"), "string".into(), "hex"), "6869".into()),
            (to(binary(0, &[255, 239]), "string".into(), "base64url"), "_-8".into()),
            (bson!({ "$toString": binary(0, b"hi") }), "aGk=".into()),
            (ordered(258.into(), "binData", "little"), binary(0, &[2, 1, 0, 0])),
            (ordered(258_i64.into(), "binData", "big"), binary(0, &[0, 0, 0, 0, 0, 0, 1, 2])),
            (ordered(1.5.into(), "binData", "big"), binary(0, &1.5_f64.to_be_bytes())),
            (ordered(binary(0, &[255]), "int", "big"), bson!(-1)),
            (ordered(binary(0, &[2, 1]), "int", "little"), bson!(258)),
            (ordered(binary(0, &[1, 2]), "long", "big"), bson!(258_i64)),
            (ordered(binary(0, &1.5_f32.to_le_bytes()), "double", "little"), bson!(1.5)),
            (
                bson!({ "$convert": { "input": 1, "to": { "type": "binData", "subtype": 2 } } }),
                binary(2, &[1, 0, 0, 0]),
            ),
            (bson!({ "$convert": { "input": null, "to": { "type": "binData", "subtype": "x" } } }), Bson::Null),
        ],
    );
    refused(
        doc! {},
        &[
            (to("aGk".into(), "binData".into(), "base64"), 241),
            (to("696".into(), "binData".into(), "hex"), 241),
            (to("aGk=".into(), uuid(), "base64"), 241),
            (to(id_text.into(), "binData".into(), "uuid"), 241),
            (to(binary(0, &[255]), "string".into(), "utf8"), 241),
            (to(binary(4, b"hi"), "string".into(), "uuid"), 241),
            (to(true.into(), "binData".into(), "hex"), 241),
            (to("".into(), "binData".into(), "HEX"), 4_341_125),
            (bson!({ "$convert": { "input": "", "to": "binData", "format": 1 } }), 4_341_114),
            (bson!({ "$convert": { "input": "", "to": "binData" } }), 4_341_115),
            (bson!({ "$convert": { "input": 1, "to": { "type": "binData", "subtype": 1.5 } } }), 4_341_106),
            (bson!({ "$convert": { "input": 1, "to": { "type": "binData", "subtype": 10 } } }), 4_341_107),
            (bson!({ "$convert": { "input": 1, "to": { "type": "binData", "subtype": "x" } } }), 4_341_108),
            (bson!({ "$convert": { "input": 1, "to": "binData", "byteOrder": 1 } }), 9_130_001),
            (ordered(1.into(), "binData", "middle"), 9_130_002),
            (ordered(binary(0, &[1; 8]), "int", "little"), 241),
            (ordered(binary(0, &[1; 3]), "long", "little"), 241),
            (bson!({ "$convert": { "input": binary(0, b"hi"), "to": { "type": "binData", "subtype": 5 } } }), 241),
            (bson!({ "$toUUID": "0102" }), 241),
        ],
    );
}
