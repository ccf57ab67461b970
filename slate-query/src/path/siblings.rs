use std::cmp::Ordering;

/// Returns the order in which MongoDB updates sibling fields and appends new ones: by name, but numbers without leading
/// zeros by value.
pub(crate) fn order_of_siblings(a: &str, b: &str) -> Ordering {
    let number = |name: &str| {
        name.starts_with(|first: char| first.is_ascii_digit()) && (name.len() == 1 || !name.starts_with('0'))
    };
    if number(a) && number(b) { a.len().cmp(&b.len()).then_with(|| a.cmp(b)) } else { a.cmp(b) }
}
