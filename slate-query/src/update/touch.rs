//! Which paths an update may change: what spares indexes their upkeep.

use super::{
    apply::position,
    parse::{Form, Update},
    step::Step,
};
use crate::path::{Part, Path};

impl Update {
    /// Whether the update may change what an index on `path` holds: `false` only where it cannot. A path is touched by
    /// updates of itself, of what holds it and of what it holds, array positions on either side disregarded.
    pub fn touches(&self, path: &Path) -> bool {
        match &self.0 {
            Form::Replacement(_) => true,
            Form::Operators(operators) => operators.paths.iter().any(|steps| meet(steps, path.parts())),
        }
    }
}

/// Whether one path leads through the other's end, where a step that may be an array position may be passed over.
fn meet(steps: &[Step], parts: &[Part]) -> bool {
    let (Some((step, later)), Some((part, rest))) = (steps.split_first(), parts.split_first()) else { return true };
    match step {
        Step::Name(name) => {
            (**name == *part.name() && meet(later, rest)) || (position(name).is_some() && meet(later, parts))
        }
        Step::Positional | Step::Each(_) => (part.position().is_some() && meet(later, rest)) || meet(later, parts),
    }
}
