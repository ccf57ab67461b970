//! Determines which paths an update can change, so that indexes on other paths need no maintenance.

use super::{
    operator::Creates,
    parse::{Update, UpdateForm},
    position::position,
    step::PathStep,
};
use crate::path::{Part, Path};

impl Update {
    /// Returns whether the update can change the entries of an index on `path`. An update touches a path if it changes
    /// the path itself, a prefix of it or a longer path, where array positions are ignored. It also touches the paths
    /// through an array that it may append to: `$set` of `a.7.b` touches an index on `a.c`.
    pub fn touches(&self, path: &Path) -> bool {
        match &self.0 {
            UpdateForm::Replacement(_) => true,
            UpdateForm::Pipeline(pipeline) => pipeline.touches(path),
            UpdateForm::Operators(operators) => {
                operators.paths.iter().any(|(steps, creates)| match (steps.split_first(), path.parts().split_first()) {
                    // The first names are never within an array.
                    (Some((PathStep::Name(name), steps)), Some((part, parts))) => {
                        **name == *part.name() && meet(steps, parts, *creates)
                    }
                    _ => true,
                })
            }
        }
    }
}

/// Returns whether the rest of an update's path and the rest of an index's path can lead to the same value: one is a
/// prefix of the other, where steps that may be array positions are optional.
fn meet(steps: &[PathStep], parts: &[Part], creates: Creates) -> bool {
    let (Some((step, later)), Some((part, rest))) = (steps.split_first(), parts.split_first()) else { return true };
    let may_append = match step {
        PathStep::Name(name) => position(name).is_some(),
        PathStep::Positional => true,
        PathStep::Each(_) => false,
    };
    if may_append && creates == Creates::Fields {
        return true;
    }
    match step {
        PathStep::Name(name) => {
            (**name == *part.name() && meet(later, rest, creates))
                || (position(name).is_some() && meet(later, parts, creates))
        }
        PathStep::Positional | PathStep::Each(_) => {
            (part.position().is_some() && meet(later, rest, creates)) || meet(later, parts, creates)
        }
    }
}
