//! Which paths an update may change: what spares indexes their upkeep.

use super::{
    apply::position,
    operator::Creates,
    parse::{Form, Update},
    step::Step,
};
use crate::path::{Part, Path};

impl Update {
    /// Whether the update may change what an index on `path` holds: `false` only where it cannot. A path is touched by
    /// updates of itself, of what holds it and of what it holds, array positions on either side disregarded; and by
    /// those that may append elements to an array on its way, as `$set` of `a.7.b` does to an index on `a.c`.
    pub fn touches(&self, path: &Path) -> bool {
        match &self.0 {
            Form::Replacement(_) => true,
            Form::Operators(operators) => {
                operators.paths.iter().any(|(steps, creates)| match (steps.split_first(), path.parts().split_first()) {
                    // No array stands above the first names.
                    (Some((Step::Name(name), steps)), Some((part, parts))) => {
                        **name == *part.name() && meet(steps, parts, *creates)
                    }
                    _ => true,
                })
            }
        }
    }
}

/// Whether one path leads through the other's end, where a step that may be an array position may be passed over.
fn meet(steps: &[Step], parts: &[Part], creates: Creates) -> bool {
    let (Some((step, later)), Some((part, rest))) = (steps.split_first(), parts.split_first()) else { return true };
    let may_append = match step {
        Step::Name(name) => position(name).is_some(),
        Step::Positional => true,
        Step::Each(_) => false,
    };
    if may_append && creates == Creates::Fields {
        return true;
    }
    match step {
        Step::Name(name) => {
            (**name == *part.name() && meet(later, rest, creates))
                || (position(name).is_some() && meet(later, parts, creates))
        }
        Step::Positional | Step::Each(_) => {
            (part.position().is_some() && meet(later, rest, creates)) || meet(later, parts, creates)
        }
    }
}
