use bson::{Bson, Decimal128};
use clap::ValueEnum;

/// How an integer that does not fit into 64 bits is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BigIntegers {
    /// The record is refused and reported
    #[default]
    Refuse,
    /// A decimal of 34 digits
    Decimal,
    /// The nearest double
    Double,
}

/// Returns whether a byte belongs to the text of a number, which may be invalid, such as `12ab`.
pub(super) fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_')
}

/// Parses a number: an integer as int32 or int64, or beyond 64 bits as `big` says; any other number as double.
///
/// # Errors
/// Fails if the text is not a number, is out of range, or begins with a superfluous zero.
pub(super) fn parse(text: &str, big: BigIntegers) -> Result<Bson, String> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned {
        "Infinity" if text.starts_with('-') => return Ok(Bson::Double(f64::NEG_INFINITY)),
        "Infinity" => return Ok(Bson::Double(f64::INFINITY)),
        "NaN" => return Ok(Bson::Double(f64::NAN)),
        _ => {}
    }
    let digits = !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit());
    if digits && unsigned.len() > 1 && unsigned.starts_with('0') {
        return Err(format!("{text} begins with a zero: remove it, or write it as a string"));
    }
    if digits && text != "-0" {
        return match text.parse::<i64>() {
            Ok(integer) => Ok(i32::try_from(integer).map_or(Bson::Int64(integer), Bson::Int32)),
            Err(_) => too_big(text, big),
        };
    }
    let plain = unsigned.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    match text.parse::<f64>() {
        Ok(number) if plain && number.is_finite() => Ok(Bson::Double(number)),
        Ok(_) if plain => Err(format!("{text} is out of range of a double")),
        _ => Err(format!("{text} is not a number")),
    }
}

fn too_big(text: &str, big: BigIntegers) -> Result<Bson, String> {
    let refused =
        || format!("the integer {text} does not fit into 64 bits: write NumberDecimal(\"{text}\") or {text}.0");
    match big {
        BigIntegers::Refuse => Err(refused()),
        BigIntegers::Decimal => text.parse::<Decimal128>().map(Bson::Decimal128).map_err(|_| refused()),
        BigIntegers::Double => text.parse().map(Bson::Double).map_err(|_| refused()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_smallest_type_that_holds_them() {
        let read = |text| parse(text, BigIntegers::Refuse);
        assert_eq!(read("12"), Ok(Bson::Int32(12)));
        assert_eq!(read("+12"), Ok(Bson::Int32(12)));
        assert_eq!(read("-2147483649"), Ok(Bson::Int64(-2_147_483_649)));
        assert_eq!(read("1.0"), Ok(Bson::Double(1.0)));
        assert_eq!(read("1e3"), Ok(Bson::Double(1000.0)));
        assert_eq!(read(".5"), Ok(Bson::Double(0.5)));
        assert!(matches!(read("-0"), Ok(Bson::Double(zero)) if zero.is_sign_negative()));
        for wrong in ["007", "1e400", "0x10", "1_000", "-", ".", "123456789012345678901234567890"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn integers_beyond_64_bits_are_refused_unless_their_type_is_chosen() {
        let text = "123456789012345678901234567890";
        assert!(parse(text, BigIntegers::Refuse).unwrap_err().contains("does not fit into 64 bits"));
        assert_eq!(parse(text, BigIntegers::Decimal), Ok(Bson::Decimal128(text.parse().unwrap())));
        assert_eq!(parse(text, BigIntegers::Double), Ok(Bson::Double(1.234_567_890_123_456_8e29)));
    }
}
