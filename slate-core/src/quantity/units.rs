/// A whole number and the unit behind it: `5s`, `256 MiB`. The number of the smallest unit, or the reason why not.
pub(super) fn parse(text: &str, units: &[(&str, u64)]) -> Result<u64, Fault> {
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end).ok_or(Fault::Malformed)?;
    let number: u64 = number.parse().map_err(|_| if number.is_empty() { Fault::Malformed } else { Fault::TooLarge })?;
    let unit = unit.trim_start();
    let (_, scale) = units.iter().find(|(name, _)| *name == unit).ok_or(Fault::Malformed)?;
    number.checked_mul(*scale).ok_or(Fault::TooLarge)
}

/// The number in the largest unit that it is a whole number of. The first unit is the smallest.
pub(super) fn format(number: u64, units: &[(&str, u64)]) -> String {
    let whole = |&&(_, scale): &&(&str, u64)| number != 0 && number.is_multiple_of(scale);
    match units.iter().filter(whole).max_by_key(|(_, scale)| *scale).or(units.first()) {
        Some((name, scale)) => format!("{}{name}", number / scale),
        None => number.to_string(),
    }
}

/// Why a text is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed,
    TooLarge,
}
