use super::{Expression, Variables};
use crate::{Code, Error, Result, raw::Value};

/// Returns the operands: the elements of an array, or the only one.
pub(super) fn operands(operand: Value<'_>, variables: &Variables) -> Result<Vec<Expression>> {
    match operand.as_array() {
        Some(array) => array.values().map(|operand| Expression::parse(operand, variables)).collect(),
        None => Ok(vec![Expression::parse(operand, variables)?]),
    }
}

/// Returns the parts of an operator by name, not parsed. The two codes are those of the errors for an operand that is
/// not a document and for an unknown name.
pub(super) fn parts<'a, const N: usize>(
    operator: &str,
    operand: Value<'a>,
    names: [&str; N],
    (not_a_document, unknown): (i32, i32),
) -> Result<[Option<Value<'a>>; N]> {
    let document = operand.as_document().ok_or_else(|| {
        Error::new(Code(not_a_document), format!("{operator} takes an object, not {}", operand.kind().alias()))
    })?;
    let mut parts = [None; N];
    for element in document.elements() {
        let place = names.iter().position(|name| name.as_bytes() == element.name);
        let part = place.and_then(|place| parts.get_mut(place)).ok_or_else(|| {
            Error::new(Code(unknown), format!("unknown parameter of {operator}: {}", element.display_name()))
        })?;
        *part = Some(element.value);
    }
    Ok(parts)
}

/// Returns a part that is required.
pub(super) fn need<'a>(part: Option<Value<'a>>, operator: &str, name: &str, code: i32) -> Result<Value<'a>> {
    part.ok_or_else(|| Error::new(Code(code), format!("{operator} needs the parameter '{name}'")))
}
