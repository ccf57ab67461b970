//! Names as array positions.

/// Parses a name as an array position; `None` if it is not a number within `u32`. As in MongoDB, leading zeros are allowed here.
pub(super) fn position(name: &str) -> Option<usize> {
    let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| name.parse::<u32>().ok()).flatten().and_then(|position| usize::try_from(position).ok())
}
