//! The constants and constructors of MongoDB's shell.

use bson::{Binary, Bson, DateTime, JavaScriptCodeWithScope, Timestamp, oid::ObjectId};

use super::{date, extended};

type Evaluate = fn(&[Bson]) -> Result<Bson, String>;

/// The constructors by name, sorted.
static CONSTRUCTORS: &[(&str, Evaluate)] = &[
    ("BSONRegExp", regex),
    ("BSONSymbol", symbol),
    ("BinData", bin_data),
    ("Binary.createFromBase64", |arguments| bin_data(&subtype_first(arguments))),
    ("Binary.createFromHexString", |arguments| hex_data(&subtype_first(arguments))),
    ("Code", code),
    ("DBRef", db_ref),
    ("Date", date),
    ("Decimal128", decimal),
    ("Decimal128.fromString", decimal),
    ("Double", double),
    ("HexData", hex_data),
    ("ISODate", date),
    ("Int32", int),
    ("Long", long),
    ("Long.fromNumber", long),
    ("Long.fromString", long),
    ("MaxKey", |_| Ok(Bson::MaxKey)),
    ("MinKey", |_| Ok(Bson::MinKey)),
    ("NumberDecimal", decimal),
    ("NumberDouble", double),
    ("NumberInt", int),
    ("NumberLong", long),
    ("ObjectId", object_id),
    ("ObjectId.createFromHexString", object_id),
    ("RegExp", regex),
    ("Symbol", symbol),
    ("Timestamp", timestamp),
    ("UUID", uuid),
];

/// Evaluates a constant (without arguments) or a call.
///
/// # Errors
/// Fails if the name is unknown or does not take these arguments.
pub(super) fn evaluate(name: &str, arguments: Option<&[Bson]>) -> Result<Bson, String> {
    match (name, arguments) {
        ("true", None) => Ok(Bson::Boolean(true)),
        ("false", None) => Ok(Bson::Boolean(false)),
        ("null", None) => Ok(Bson::Null),
        ("undefined", None) => Ok(Bson::Undefined),
        ("NaN", None) => Ok(Bson::Double(f64::NAN)),
        ("Infinity", None) => Ok(Bson::Double(f64::INFINITY)),
        ("MinKey", None) => Ok(Bson::MinKey),
        ("MaxKey", None) => Ok(Bson::MaxKey),
        (_, None) => Err(format!("unknown value {name}: strings are written in quotes")),
        (_, Some(arguments)) => {
            let found = CONSTRUCTORS.iter().find(|(other, _)| *other == name);
            let (_, evaluate) = found.ok_or_else(|| format!("unknown function {name}"))?;
            evaluate(arguments).map_err(|why| format!("{name}: {why}"))
        }
    }
}

fn expected<T>(what: &str) -> Result<T, String> {
    Err(format!("expected {what}"))
}

fn date(arguments: &[Bson]) -> Result<Bson, String> {
    let millis = match arguments {
        [] => return Ok(Bson::DateTime(DateTime::now())),
        [Bson::String(text)] => date::millis(text).ok_or_else(|| format!("{text:?} is not an ISO 8601 date"))?,
        [Bson::Int32(millis)] => i64::from(*millis),
        [Bson::Int64(millis)] => *millis,
        [number @ Bson::Double(_)] => extended::parsed(number)?,
        _ => return expected("an ISO 8601 date in quotes, or milliseconds since 1970"),
    };
    Ok(Bson::DateTime(DateTime::from_millis(millis)))
}

fn object_id(arguments: &[Bson]) -> Result<Bson, String> {
    match arguments {
        [] => Ok(Bson::ObjectId(ObjectId::new())),
        [hex @ Bson::String(_)] => extended::parsed(hex).map(Bson::ObjectId),
        _ => expected("24 hexadecimal digits in quotes"),
    }
}

fn int(arguments: &[Bson]) -> Result<Bson, String> {
    let [argument] = arguments else { return expected("one number") };
    extended::parsed(argument).map(Bson::Int32)
}

fn long(arguments: &[Bson]) -> Result<Bson, String> {
    match arguments {
        [argument] => extended::parsed(argument).map(Bson::Int64),
        // The driver's `Long(low, high)`.
        [Bson::Int32(low), Bson::Int32(high)] => {
            Ok(Bson::Int64((i64::from(*high) << 32) | i64::from(low.cast_unsigned())))
        }
        _ => expected("one number"),
    }
}

fn double(arguments: &[Bson]) -> Result<Bson, String> {
    match arguments {
        [Bson::Double(number)] => Ok(Bson::Double(*number)),
        [argument] => extended::parsed(argument).map(Bson::Double),
        _ => expected("one number"),
    }
}

fn decimal(arguments: &[Bson]) -> Result<Bson, String> {
    match arguments {
        [argument] => extended::parsed(argument).map(Bson::Decimal128),
        _ => expected("one number, in quotes"),
    }
}

fn timestamp(arguments: &[Bson]) -> Result<Bson, String> {
    let (time, increment) = match arguments {
        [Bson::Document(parts)] => (parts.get("t"), parts.get("i")),
        [time, increment] => (Some(time), Some(increment)),
        _ => (None, None),
    };
    let (Some(time), Some(increment)) = (time, increment) else { return expected("seconds and a counter") };
    Ok(Bson::Timestamp(Timestamp { time: extended::parsed(time)?, increment: extended::parsed(increment)? }))
}

fn bin_data(arguments: &[Bson]) -> Result<Bson, String> {
    match arguments {
        [subtype, Bson::String(base64)] => extended::binary(base64, extended::parsed(subtype)?),
        _ => expected("a subtype and base64 in quotes"),
    }
}

/// Moves the subtype before the bytes, for the arguments of a function that takes it after the bytes. If the subtype is
/// missing, it is 0.
fn subtype_first(arguments: &[Bson]) -> Vec<Bson> {
    match arguments {
        [bytes] => vec![Bson::Int32(0), bytes.clone()],
        [bytes, subtype] => vec![subtype.clone(), bytes.clone()],
        more => more.to_vec(),
    }
}

fn hex_data(arguments: &[Bson]) -> Result<Bson, String> {
    let [subtype, Bson::String(hex)] = arguments else { return expected("a subtype and hexadecimal digits in quotes") };
    let subtype: u8 = extended::parsed(subtype)?;
    let digits: Option<Vec<u8>> =
        hex.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let bytes = digits.filter(|digits| digits.len() % 2 == 0).map(|digits| {
        digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
    });
    let bytes = bytes.ok_or("expected pairs of hexadecimal digits")?;
    Ok(Bson::Binary(Binary { subtype: subtype.into(), bytes }))
}

fn uuid(arguments: &[Bson]) -> Result<Bson, String> {
    match arguments {
        [] => Ok(Bson::Binary(bson::Uuid::new().into())),
        [Bson::String(text)] => extended::uuid(text),
        _ => expected("a UUID in quotes"),
    }
}

fn regex(arguments: &[Bson]) -> Result<Bson, String> {
    match arguments {
        [Bson::String(pattern)] => extended::regex(pattern, "").map(Bson::RegularExpression),
        [Bson::String(pattern), Bson::String(options)] => {
            extended::regex(pattern, options).map(Bson::RegularExpression)
        }
        _ => expected("a pattern, and optionally options, in quotes"),
    }
}

fn code(arguments: &[Bson]) -> Result<Bson, String> {
    match arguments {
        [Bson::String(code)] => Ok(Bson::JavaScriptCode(code.clone())),
        [Bson::String(code), Bson::Document(scope)] => {
            let (code, scope) = (code.clone(), scope.clone());
            Ok(Bson::JavaScriptCodeWithScope(JavaScriptCodeWithScope { code, scope }))
        }
        _ => expected("code in quotes, and optionally a document"),
    }
}

fn symbol(arguments: &[Bson]) -> Result<Bson, String> {
    match arguments {
        [Bson::String(text)] => Ok(Bson::Symbol(text.clone())),
        _ => expected("a string"),
    }
}

fn db_ref(arguments: &[Bson]) -> Result<Bson, String> {
    match arguments {
        [Bson::String(collection), id] => Ok(bson::bson!({ "$ref": collection, "$id": id.clone() })),
        [Bson::String(collection), id, Bson::String(database)] => {
            Ok(bson::bson!({ "$ref": collection, "$id": id.clone(), "$db": database }))
        }
        _ => expected("a collection and an _id"),
    }
}

#[cfg(test)]
mod tests {
    use bson::bson;

    use super::*;
    use crate::json::{Dialect, parser::regex_value, value};

    fn read(text: &str) -> Bson {
        value(text, Dialect::DATA).unwrap()
    }

    #[test]
    fn the_values_in_plans_are_read_as_they_were() {
        let db = slate_core::Database::open("memory:").unwrap();
        let collection = db.collection::<bson::RawDocumentBuf>("c");
        collection.insert_one(&bson::rawdoc! { "_id": 1 }).unwrap();
        let binary = |subtype: bson::spec::BinarySubtype, bytes: Vec<u8>| Bson::Binary(Binary { subtype, bytes });
        let values = [
            Bson::DateTime(DateTime::from_millis(1_790_812_800_123)),
            Bson::DateTime(DateTime::from_millis(-62_135_596_800_000)),
            Bson::DateTime(DateTime::from_millis(253_402_300_799_999)),
            Bson::DateTime(DateTime::from_millis(253_402_300_800_000)),
            Bson::DateTime(DateTime::MIN),
            Bson::ObjectId(ObjectId::new()),
            Bson::Decimal128("-1.50E-6100".parse().unwrap()),
            Bson::Decimal128("NaN".parse().unwrap()),
            Bson::Int32(-5),
            Bson::Int64(i64::MIN),
            Bson::Int64(1 << 40),
            Bson::Double(5.0),
            Bson::Double(5e-324),
            Bson::Double(f64::MAX),
            Bson::Double(f64::NEG_INFINITY),
            Bson::Timestamp(Timestamp { time: u32::MAX, increment: 7 }),
            binary(bson::spec::BinarySubtype::Generic, vec![0, 255]),
            binary(bson::spec::BinarySubtype::Uuid, (0..16).collect()),
            binary(bson::spec::BinarySubtype::UserDefined(200), vec![]),
            regex_value("^a[/b]\\/c\n", "im"),
            regex_value("^a[b]\\d", "i"),
            regex_value("", ""),
            regex_value("\\*", "s"),
            Bson::String("a \"quote\", \\ and \n".into()),
            Bson::JavaScriptCode("f(\"x\")".into()),
            Bson::Symbol("s".into()),
            Bson::Boolean(true),
            Bson::Null,
            Bson::MinKey,
            Bson::MaxKey,
            bson!({ "a": [{ "b": DateTime::from_millis(0) }], "$": {} }),
        ];
        let drawn = |filter: &bson::Document| {
            let plan = collection.find(filter).explain(slate_core::ExplainVerbosity::QueryPlanner);
            plan.unwrap().to_string()
        };
        for value in &values {
            let plan = drawn(&bson::doc! { "a": { "$in": [value.clone(), 7, "x"] } });
            let (_, filter) = plan.lines().next().unwrap().split_once("FILTER ").unwrap();
            let Bson::Document(filter) = read(filter) else { unreachable!("{plan}") };
            let list = filter.get_document("a").unwrap().get_array("$in").unwrap();
            assert!(list.iter().any(|read| format!("{read:?}") == format!("{value:?}")), "{value:?}: {plan}");
        }
        collection.create_index(slate_core::Index::on(bson::doc! { "a": 1 })).run().unwrap();
        for value in values {
            let plan = drawn(&bson::doc! { "a": value.clone() });
            // Null, patterns and some others have more than one interval.
            let Some((_, bounds)) = plan.split_once(": a [").filter(|(_, bounds)| !bounds.contains(" ∪ ")) else {
                continue;
            };
            let bounds = bounds.lines().next().unwrap();
            let point = bounds.split_once("], where ").map_or(bounds, |(point, _)| point);
            let read = value_of(point.strip_suffix(']').unwrap_or(point));
            // Numbers of all types share a key, as strings and symbols do, and null and missing fields.
            let is_shared = matches!(
                value,
                Bson::Int32(_) | Bson::Int64(_) | Bson::Double(_) | Bson::Decimal128(_) | Bson::Symbol(_) | Bson::Null
            );
            assert!(read == value || is_shared, "{value:?}: {plan}");
        }
    }

    fn value_of(text: &str) -> Bson {
        value(text, Dialect::DATA).unwrap_or_else(|why| unreachable!("{text}: {why}"))
    }

    #[test]
    fn the_shell_s_literals_are_values() {
        let oid = "507f1f77bcf86cd799439011";
        assert_eq!(read(&format!("ObjectId('{oid}')")), Bson::ObjectId(oid.parse().unwrap()));
        assert_eq!(read("ISODate(\"1970-01-01T00:00:01Z\")"), Bson::DateTime(DateTime::from_millis(1000)));
        assert_eq!(read("new Date(5)"), Bson::DateTime(DateTime::from_millis(5)));
        assert_eq!(read("NumberLong(5)"), Bson::Int64(5));
        assert_eq!(read("NumberLong(\"9007199254740993\")"), Bson::Int64(9_007_199_254_740_993));
        assert_eq!(read("Long(1, 1)"), Bson::Int64((1 << 32) + 1));
        assert_eq!(read("NumberInt(5)"), Bson::Int32(5));
        assert_eq!(read("NumberDecimal('1.10')"), Bson::Decimal128("1.10".parse().unwrap()));
        assert_eq!(read("Double(5)"), Bson::Double(5.0));
        assert_eq!(read("Timestamp(1, 2)"), Bson::Timestamp(Timestamp { time: 1, increment: 2 }));
        assert_eq!(read("Timestamp({ t: 1, i: 2 })"), Bson::Timestamp(Timestamp { time: 1, increment: 2 }));
        assert_eq!(read("HexData(0, 'ff0a')"), read("BinData(0, '/wo=')"));
        assert_eq!(read("Binary.createFromBase64('/wo=', 0)"), read("BinData(0, '/wo=')"));
        assert_eq!(read("Binary.createFromBase64('/wo=')"), read("BinData(0, '/wo=')"));
        assert_eq!(read("Binary.createFromHexString('ff0a', 128)"), read("HexData(128, 'ff0a')"));
        assert_eq!(read("Long.fromString('5')"), Bson::Int64(5));
        assert_eq!(read("new Date(1e12)"), Bson::DateTime(DateTime::from_millis(1_000_000_000_000)));
        assert_eq!(read("/a\\/b/ix"), regex_value("a/b", "ix"));
        assert_eq!(read("/[/]'/"), regex_value("[/]'", ""));
        assert_eq!(
            read("[MinKey, MaxKey(), undefined, -Infinity]"),
            bson!([Bson::MinKey, Bson::MaxKey, Bson::Undefined, f64::NEG_INFINITY])
        );
        assert_eq!(read("DBRef('users', 1)"), bson!({ "$ref": "users", "$id": 1 }));
    }

    #[test]
    fn faults_name_the_literal() {
        let why = |text: &str| value(text, Dialect::DATA).unwrap_err();
        assert_eq!(why("ISODate('yesterday')"), "ISODate: \"yesterday\" is not an ISO 8601 date (line 1, column 1)");
        assert_eq!(why("{ a: hello }"), "unknown value hello: strings are written in quotes (line 1, column 6)");
        assert_eq!(why("{ a: sleep(5) }"), "unknown function sleep (line 1, column 6)");
        for function in ["function() { return this.a > 1 }", "function (a, b) { return a; }", "function named() {}"] {
            let text = format!("{{ $where: {function} }}");
            let expected = "JavaScript is not supported: a condition on several fields is an $expr (line 1, column 11)";
            assert_eq!(why(&text), expected, "{text}");
        }
        assert_eq!(
            why("NumberInt(5000000000)"),
            "NumberInt: \"5000000000\" is not an integer of 32 bits (line 1, column 1)"
        );
        assert_eq!(
            why("ObjectId('xyz')"),
            "ObjectId: \"xyz\" is not an ObjectId, which has 24 hexadecimal digits (line 1, column 1)"
        );
        assert!(why("UUID('5')").starts_with("UUID: \"5\" is not a UUID"));
        assert!(why("BinData(0, '*')").starts_with("BinData: the text is not base64"));
    }
}
