/// Parses a whole number and its unit, such as `5s` or `256 MiB`. Returns the value in the smallest unit.
pub(super) fn parse(text: &str, units: &[(&str, u64)]) -> Result<u64, ParseError> {
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end).ok_or(ParseError::Malformed)?;
    let number: u64 =
        number.parse().map_err(|_| if number.is_empty() { ParseError::Malformed } else { ParseError::TooLarge })?;
    let unit = unit.trim_start();
    let (_, scale) = units.iter().find(|(name, _)| *name == unit).ok_or(ParseError::Malformed)?;
    number.checked_mul(*scale).ok_or(ParseError::TooLarge)
}

/// Formats a number in the largest unit that divides it. The first unit is the smallest.
pub(super) fn format(number: u64, units: &[(&str, u64)]) -> String {
    let divides = |&&(_, scale): &&(&str, u64)| number != 0 && number.is_multiple_of(scale);
    match units.iter().filter(divides).max_by_key(|(_, scale)| *scale).or(units.first()) {
        Some((name, scale)) => format!("{}{name}", number / scale),
        None => number.to_string(),
    }
}

/// Why a text could not be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParseError {
    Malformed,
    TooLarge,
}
