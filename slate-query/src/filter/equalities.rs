use super::{Node, field::Sense, node::Tree};
use crate::{
    Code, Error, Result, order,
    path::Path,
    raw::{OwnedValue, Value},
};

/// Returns the paths that the conditions require to equal a value, with these values. Leaves out the paths for which `is_wanted`
/// returns false.
pub(super) fn of(node: &Node, is_wanted: impl Fn(&Path) -> Result<bool>) -> Result<Vec<(Path, OwnedValue)>> {
    let mut found: Vec<(Path, OwnedValue)> = Vec::new();
    for conjunct in node.conjuncts() {
        let written = match &conjunct.tree {
            Tree::Collated(collated) => collated.plain(),
            _ => conjunct,
        };
        let Tree::Field(field) = &written.tree else { continue };
        let Some(value) = field.operator.equality().filter(|_| field.sense == Sense::Holds) else { continue };
        if !is_wanted(&field.path)? {
            continue;
        }
        if let Some((other, known)) = found.iter().find(|(path, _)| one_begins_the_other(path, &field.path)) {
            // As in MongoDB, equal conditions are one.
            if *other == field.path && order::equal(known.as_value(), value) {
                continue;
            }
            let message = if *other == field.path {
                format!("cannot infer query fields to set, path '{other}' is matched twice")
            } else {
                format!("cannot infer query fields to set, both paths '{}' and '{other}' are matched", field.path)
            };
            return Err(Error::new(Code::NOT_SINGLE_VALUE_FIELD, message).at(field.path.as_str()));
        }
        found.push((field.path.clone(), value.to_owned()));
    }
    Ok(found)
}

/// Returns the value that a conjunct requires at this path, without a collation.
pub(super) fn value_at<'n>(node: &'n Node, path: &str) -> Option<Value<'n>> {
    node.conjuncts().iter().find_map(|conjunct| {
        // With a collation, several strings can be equal to the operand.
        let Tree::Field(field) = &conjunct.tree else { return None };
        if field.sense != Sense::Holds || field.path.as_str() != path {
            return None;
        }
        field.operator.equality()
    })
}

fn one_begins_the_other(a: &Path, b: &Path) -> bool {
    a.parts().iter().zip(b.parts()).all(|(a, b)| a.name() == b.name())
}
