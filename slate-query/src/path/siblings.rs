use std::cmp::Ordering;

/// Returns the order in which MongoDB updates sibling fields and appends new ones: by name, but numbers without leading
/// zeros by value.
pub(crate) fn order_of_siblings(a: &[u8], b: &[u8]) -> Ordering {
    let number =
        |name: &[u8]| name.first().is_some_and(|first| first.is_ascii_digit() && (name.len() == 1 || *first != b'0'));
    if number(a) && number(b) { a.len().cmp(&b.len()).then_with(|| a.cmp(b)) } else { a.cmp(b) }
}
