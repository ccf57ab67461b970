use super::ALL;
use crate::plan::{Query, candidate::Candidate};

/// A change of a candidate that does not change the result of its plan.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    pub(crate) apply: fn(&mut Candidate, &Query) -> Outcome,
}

/// The effect of a rule on a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Unchanged,
    Changed,
    /// The plan is complete: later rules are not applied.
    Finished,
}

impl Outcome {
    pub(super) fn of_change(is_changed: bool) -> Self {
        if is_changed { Self::Changed } else { Self::Unchanged }
    }
}

/// The rules that changed a plan: a bit for each of [`ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FiredRules(u16);

const _: () = assert!(ALL.len() <= u16::BITS as usize, "each rule has a bit");

impl FiredRules {
    pub(crate) fn add(&mut self, number: usize) {
        self.0 |= 1 << number;
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        ALL.iter().enumerate().filter(move |(number, _)| self.0 & 1 << number != 0).map(|(_, rule)| rule.name)
    }
}
