use ahash::AHashMap;

use super::{Node, field::Sense, node::Tree};
use crate::{
    Code, Error, Result, order,
    path::Path,
    raw::{OwnedValue, Value},
    work,
};

/// Returns the paths that the conditions require to equal a value, with these values. Leaves out the paths for which `is_wanted`
/// returns false. Fails with `NotSingleValueField` (54) if two of the equalities contradict each other or one path begins with
/// the other.
pub(super) fn of(node: &Node, is_wanted: impl Fn(&Path) -> Result<bool>) -> Result<Vec<(Path, OwnedValue)>> {
    let mut found = Found::default();
    for conjunct in node.conjuncts() {
        work::take(work::PARSED)?;
        let written = match &conjunct.tree {
            Tree::Collated(collated) => collated.plain(),
            _ => conjunct,
        };
        let Some((path, value)) = written.equality(Sense::Holds) else { continue };
        if !is_wanted(path)? {
            continue;
        }
        if let Some((other, known)) = found.conflict(path.as_str()) {
            // As in MongoDB, equal conditions are one.
            if other == path && order::equal(known.as_value(), value) {
                continue;
            }
            let message = if other == path {
                format!("cannot infer query fields to set, path '{other}' is matched twice")
            } else {
                format!("cannot infer query fields to set, both paths '{path}' and '{other}' are matched")
            };
            return Err(Error::new(Code::NOT_SINGLE_VALUE_FIELD, message).at(path.as_str()));
        }
        found.add(path, value);
    }
    Ok(found.equalities)
}

/// The equalities so far.
#[derive(Default)]
struct Found<'n> {
    equalities: Vec<(Path, OwnedValue)>,
    /// For each path, its position in `equalities`.
    paths: AHashMap<&'n str, usize>,
    /// For each proper prefix of a path, the position of the first equality whose path begins with it.
    prefixes: AHashMap<&'n str, usize>,
}

impl<'n> Found<'n> {
    /// Returns the first equality whose path begins with this one, or is the beginning of it, if there is one.
    fn conflict(&self, path: &str) -> Option<&(Path, OwnedValue)> {
        let shorter = prefixes(path).filter_map(|prefix| self.paths.get(prefix));
        let place = shorter.chain(self.paths.get(path)).chain(self.prefixes.get(path)).min()?;
        self.equalities.get(*place)
    }

    fn add(&mut self, path: &'n Path, value: Value<'_>) {
        let place = self.equalities.len();
        self.paths.insert(path.as_str(), place);
        prefixes(path.as_str()).for_each(|prefix| {
            self.prefixes.entry(prefix).or_insert(place);
        });
        self.equalities.push((path.clone(), value.to_owned()));
    }
}

/// Returns the proper prefixes of a path.
fn prefixes(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('.').filter_map(|(dot, _)| path.get(..dot))
}

/// Returns the value that a conjunct requires at this path, without a collation; `None` if no conjunct does.
pub(super) fn value_at<'n>(node: &'n Node, path: &str) -> Option<Value<'n>> {
    node.conjuncts().iter().find_map(|conjunct| {
        // With a collation, several strings can be equal to the operand.
        conjunct.equality(Sense::Holds).filter(|(on, _)| on.as_str() == path).map(|(_, value)| value)
    })
}
