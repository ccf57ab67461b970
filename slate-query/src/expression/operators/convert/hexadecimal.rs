//! Hexadecimal floating-point numbers as C writes them: `0x1.8p1`.

/// Returns the number; `None` if the text is not one, or has more digits than 120 bits hold.
pub(super) fn parse(text: &str) -> Option<f64> {
    let (sign, text) = match text.as_bytes().first()? {
        b'-' => (-1.0, text.get(1..)?),
        b'+' => (1.0, text.get(1..)?),
        _ => (1.0, text),
    };
    let text = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let (digits, power) = match text.split_once(['p', 'P']) {
        Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = [whole, fraction].concat();
    if digits.is_empty() || digits.len() > 30 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "rounds to the nearest double")]
    let number = u128::from_str_radix(&digits, 16).ok()? as f64;
    let power = f64::from(power) - 4.0 * f64::from(u8::try_from(fraction.len()).ok()?);
    // Two steps, because a power alone may be beyond the range of doubles.
    let half = (power / 2.0).trunc();
    Some(sign * number * half.exp2() * (power - half).exp2())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn numbers_are_read_as_c_reads_them() {
        for (text, number) in [
            ("0x1p0", 1.0),
            ("+0x1.8p1", 3.0),
            ("-0X.8P1", -1.0),
            ("0xff", 255.0),
            ("0x1p-1074", 5e-324),
            ("0x0.0000000001p1060", 2_f64.powi(1020)),
        ] {
            assert_eq!(parse(text), Some(number), "{text}");
        }
        for text in ["", "0x", "1p0", "0xg", "0x1p", "0x1p1.5", "0x1 ", "0x1111111111111111111111111111111"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
