//! Baselines and goals of a comparison: which programs are compared, and which ratios are required.

use std::{collections::BTreeMap, path::Path, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Joined, Line};
use crate::{Result, number::ratio};

/// Baselines and goals, as read from a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goals {
    /// The baseline programs of each program; each row uses the fastest of them. `*` is the entry for all other
    /// programs.
    #[serde(default)]
    pub baselines: BTreeMap<String, Vec<String>>,
    /// The variants that have goals. Rows without a variant have goals, too. Other variants show only ratios.
    #[serde(default)]
    pub variants: Vec<String>,
    /// Groups of rows with the same goals.
    #[serde(default)]
    pub groups: Vec<Group>,
}

/// Rows with the same goals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Description: `"sort by index with limit"`.
    pub name: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Goals by program.
    pub goals: BTreeMap<String, Goal>,
}

/// The ratios to reach, relative to the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// The required ratio.
    pub must: f64,
    /// The desired ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aim: Option<f64>,
}

/// Which goal a ratio reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Below the required ratio.
    Short,
    /// The required ratio.
    Must,
    /// The desired ratio.
    Aim,
}

/// Key for programs without their own baseline.
const ALL_OTHERS: &str = "*";

impl Goals {
    /// Reads goals from a JSON file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or has another form.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?)
    }

    /// Returns the baseline programs of a program.
    pub fn baseline(&self, program: &str) -> &[String] {
        self.baselines.get(program).or_else(|| self.baselines.get(ALL_OTHERS)).map_or(&[], Vec::as_slice)
    }

    /// Returns the ratio of a column to its baseline. `None` without a baseline, or if either has no correct result.
    pub fn ratio(&self, joined: &Joined, line: &Line, column: usize) -> Option<f64> {
        let program = &joined.columns.get(column)?.about.name;
        let times = self.baseline(program).iter().filter_map(|baseline| {
            let place = joined.place(baseline)?;
            (place != column).then(|| line.cell(place)?.usable_time())?
        });
        let baseline = times.min()?;
        let time = line.cell(column)?.usable_time()?;
        (time > Duration::ZERO).then(|| ratio(baseline.as_secs_f64(), time.as_secs_f64()))
    }

    /// Returns the goal of a program for a row; `None` if it has none.
    pub fn goal(&self, line: &Line, program: &str) -> Option<Goal> {
        let counts = line.variant.as_ref().is_none_or(|variant| self.variants.contains(variant));
        let group = self.groups.iter().find(|group| counts && group.rows.contains(&line.name))?;
        group.goals.get(program).copied()
    }

    /// Returns rows with goals that are missing in the reports: misspelled or renamed rows.
    pub fn missing<'g>(&'g self, joined: &'g Joined) -> impl Iterator<Item = &'g str> {
        let rows = self.groups.iter().flat_map(|group| &group.rows);
        rows.map(String::as_str).filter(|row| joined.lines.iter().all(|line| line.name != *row))
    }
}

impl Goal {
    /// Returns which goal a ratio reaches.
    pub fn reach(self, ratio: f64) -> Reach {
        match self.aim {
            Some(aim) if ratio >= aim => Reach::Aim,
            _ if ratio >= self.must => Reach::Must,
            _ => Reach::Short,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::joined::tests::report, *};
    use crate::Verdict;

    pub(crate) fn goals() -> Goals {
        serde_json::from_str(
            r#"{
                "baselines": {"*": ["file"], "mine": ["memory", "file"]},
                "variants": ["lent"],
                "groups": [{"name": "scans", "rows": ["scan"], "goals": {"mine": {"must": 4, "aim": 10}}}]
            }"#,
        )
        .unwrap()
    }

    fn joined(memory: Verdict) -> Joined {
        Joined::new([
            report("mine", &[("scan", 2, Verdict::Right)]),
            report("theirs", &[("scan", 10, Verdict::Right)]),
            report("memory", &[("scan", 9, memory)]),
            report("file", &[("scan", 20, Verdict::Right)]),
        ])
    }

    #[test]
    fn the_faster_of_the_baselines_counts() {
        let joined = joined(Verdict::Right);
        let ratios: Vec<_> = (0..4).map(|column| goals().ratio(&joined, &joined.lines[0], column)).collect();
        for (ratio, wanted) in ratios.iter().zip([4.5, 2.0, 20.0 / 9.0]) {
            assert!((ratio.unwrap() - wanted).abs() < 1e-9, "{ratio:?}");
        }
        assert_eq!(ratios[3], None);
    }

    #[test]
    fn a_wrong_result_is_no_baseline() {
        let joined = joined(Verdict::Wrong("no".into()));
        let ratio = goals().ratio(&joined, &joined.lines[0], 0).unwrap();
        assert!((ratio - 10.0).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn goals_are_for_rows_without_a_variant_and_for_those_named() {
        let line = |variant: Option<&str>| Line {
            name: "scan".into(),
            variant: variant.map(str::to_owned),
            ..Line::default()
        };
        assert!(goals().goal(&line(None), "mine").is_some());
        assert!(goals().goal(&line(Some("lent")), "mine").is_some());
        assert!(goals().goal(&line(Some("owned")), "mine").is_none());
        assert!(goals().goal(&line(None), "theirs").is_none());
    }

    #[test]
    fn reach_is_short_must_or_aim() {
        let goal = Goal { must: 4.0, aim: Some(10.0) };
        assert_eq!([3.9, 4.0, 10.0].map(|ratio| goal.reach(ratio)), [Reach::Short, Reach::Must, Reach::Aim]);
        assert_eq!(Goal { must: 4.0, aim: None }.reach(99.0), Reach::Must);
    }

    #[test]
    fn goals_of_missing_rows_are_reported() {
        let mut goals = goals();
        goals.groups[0].rows.push("scam".into());
        assert_eq!(goals.missing(&joined(Verdict::Right)).collect::<Vec<_>>(), ["scam"]);
    }
}
