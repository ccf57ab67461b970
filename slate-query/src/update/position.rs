//! Names as array positions.

/// Returns the array position that a name is. As in MongoDB, leading zeros are allowed here.
pub(super) fn position(name: &str) -> Option<usize> {
    let digits = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| name.parse::<u32>().ok()).flatten().and_then(|position| usize::try_from(position).ok())
}
