//! Counts the outcomes of all cases.

use std::collections::BTreeMap;

use super::{
    case::{Case, Expected},
    run::Outcome,
};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) unsupported: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    areas: BTreeMap<String, Tally>,
    failed: Vec<(String, String)>,
    unsupported: Vec<(String, String)>,
    /// Writes that MongoDB may reject.
    uncertain: Tally,
    refusals: Refusals,
    forced: Forced,
}

/// How commands that must fail have failed.
#[derive(Debug, Default)]
struct Refusals {
    expected: usize,
    refused: usize,
    same_code: usize,
    /// Failed with another code: MongoDB's code, Slate's code, count.
    other_codes: BTreeMap<(i32, i32), usize>,
}

/// Counts of the cases with forced indexes.
#[derive(Debug, Default)]
struct Forced {
    cases: usize,
    using: usize,
}

impl Tally {
    fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Passed | Outcome::Refused { .. } => self.passed += 1,
            Outcome::Failed(_) => self.failed += 1,
            Outcome::Unsupported(_) => self.unsupported += 1,
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.unsupported += other.unsupported;
    }
}

impl Report {
    pub(crate) fn count(&mut self, case: &Case, outcome: Outcome) {
        if case.may_be_refused {
            self.uncertain.count(&outcome);
        } else {
            self.areas.entry(case.area.clone()).or_default().count(&outcome);
        }
        if let Expected::Refusal(code) = case.expected {
            self.refusals.count(code, &outcome);
        }
        match outcome {
            Outcome::Passed | Outcome::Refused { .. } => {}
            Outcome::Failed(why) => self.failed.push((case.id.clone(), why)),
            Outcome::Unsupported(name) => self.unsupported.push((case.id.clone(), name)),
        }
    }

    /// Counts a case that ran with forced indexes.
    pub(crate) fn count_forced(&mut self, used: Used) {
        self.forced.cases += 1;
        self.forced.using += usize::from(used == Used::Index);
    }

    /// Returns the cases with a certain expectation.
    pub(crate) fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.areas.values().for_each(|tally| total.add(*tally));
        total
    }

    pub(crate) fn has_failures(&self) -> bool {
        !self.failed.is_empty()
    }

    pub(crate) fn print(&self) {
        let width = self.areas.keys().map(String::len).max().unwrap_or_default();
        println!("{:width$}  passed  failed  unsupported", "area");
        for (area, Tally { passed, failed, unsupported }) in &self.areas {
            println!("{area:width$}  {passed:6}  {failed:6}  {unsupported:11}");
        }
        for (id, name) in &self.unsupported {
            println!("unsupported {id}: {name}");
        }
        for (id, why) in &self.failed {
            println!("failed {id}\n    {why}");
        }
        self.print_names();
        self.refusals.print();
        let Tally { passed, failed, unsupported } = self.uncertain;
        if passed + failed + unsupported > 0 {
            println!("writes that may fail: passed {passed}, failed {failed}, unsupported {unsupported}");
        }
        if self.forced.cases > 0 {
            println!("cases that used an index: {} of {}", self.forced.using, self.forced.cases);
        }
    }

    /// Prints unsupported features, most frequent first.
    fn print_names(&self) {
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, name) in &self.unsupported {
            *names.entry(name).or_default() += 1;
        }
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        for (name, count) in names {
            println!("unsupported by name: {count:5} {name}");
        }
    }
}

/// Counts the reads of a forced case's plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Used {
    Index,
    Collection,
}

impl Refusals {
    fn count(&mut self, code: i32, outcome: &Outcome) {
        self.expected += 1;
        let Outcome::Refused { other_code } = outcome else { return };
        self.refused += 1;
        match other_code {
            None => self.same_code += 1,
            Some(other) => *self.other_codes.entry((code, *other)).or_default() += 1,
        }
    }

    fn print(&self) {
        if self.expected == 0 {
            return;
        }
        for ((expected, found), count) in &self.other_codes {
            println!("failed with another code: {count:5} expected {expected}, found {found}");
        }
        println!("refused: {} of {} ({})", self.refused, self.expected, percent(self.refused, self.expected));
        println!("  with the same code: {} ({})", self.same_code, percent(self.same_code, self.expected));
    }
}

/// Formats per cent in tenths, rounded down, so that only all cases give 100 %.
fn percent(part: usize, whole: usize) -> String {
    let tenths = (part * 1_000).checked_div(whole).unwrap_or_default();
    format!("{}.{} %", tenths / 10, tenths % 10)
}
