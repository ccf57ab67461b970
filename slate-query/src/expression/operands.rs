use super::{Env, Evaluated, Expression, Variables, node::Node};
use crate::{
    Code, Error, Result,
    raw::{Doc, Value},
};

impl Expression {
    /// Replaces an expression that does not depend on a document by its value. As in MongoDB, an expression that fails
    /// is refused even if it is never evaluated; with [`Variables::lenient`] it stays as it is.
    pub(super) fn folded(self, variables: &Variables) -> Result<Self> {
        match self.computed() {
            Err(_) if variables.is_lenient() => Ok(self),
            computed => computed,
        }
    }

    fn computed(&self) -> Result<Self> {
        let value = match self.evaluate(&Env::new(Doc::new(&[]), 0))?.into_owned() {
            Evaluated::Owned(value) => Some(value),
            Evaluated::Borrowed(value) => Some(value.to_owned()),
            Evaluated::Missing => None,
        };
        Ok(Self(Node::Constant(value)))
    }
}

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
