//! Joins reports: one column per program, one line per row.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{About, Allocations, Machine, Report, Row, Samples, Verdict};

/// The joined reports of one bench.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    /// The programs in the order of their first reports.
    pub columns: Vec<Column>,
    /// The lines in the order of the first report that contains them.
    pub lines: Vec<Line>,
}

/// A program: all reports with one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The measured database.
    pub about: About,
    /// The machine of the first round.
    pub machine: Machine,
    /// Start of the first round in UTC.
    pub date: String,
    /// Command line of the first round.
    pub command: Vec<String>,
    /// Number of rounds.
    pub rounds: u64,
}

/// A row with the results of all programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Title of its section.
    pub section: String,
    /// Size of its section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Name of the row.
    pub name: String,
    /// Variant of the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Results, one per column. `None` if the program does not have the row.
    pub cells: Vec<Option<Cell>>,
}

/// The results of one program over all rounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Median of each round.
    pub rounds: Samples,
    /// The worst verdict of all rounds.
    pub verdict: Verdict,
    /// Number of result rows in the first round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Expected number of result rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// Allocations of one run in the first round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocations: Option<Allocations>,
    /// Bytes in the first round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Remarks of the first round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Joined {
    /// Joins reports. Reports with the same name are rounds of one program.
    pub fn new(reports: impl IntoIterator<Item = Report>) -> Self {
        let mut joined = Self::default();
        for report in reports {
            let column = joined.column(&report);
            for section in report.sections {
                for row in section.rows {
                    joined.line(&section.title, section.size, &row).round(column, row);
                }
            }
        }
        let columns = joined.columns.len();
        joined.lines.iter_mut().for_each(|line| line.cells.resize(columns, None));
        joined
    }

    /// Returns the column of the report's program, adding it if it is new.
    fn column(&mut self, report: &Report) -> usize {
        let place = self.columns.iter().position(|column| column.about.name == report.about.name);
        let place = place.unwrap_or_else(|| {
            self.columns.push(Column {
                about: report.about.clone(),
                machine: report.machine.clone(),
                date: report.date.clone(),
                command: report.command.clone(),
                rounds: 0,
            });
            self.columns.len() - 1
        });
        if let Some(column) = self.columns.get_mut(place) {
            column.rounds += 1;
        }
        place
    }

    /// Returns the row's line. A new line is added at the end of its section, a new section at the end.
    fn line(&mut self, section: &str, size: Option<u64>, row: &Row) -> &mut Line {
        let of_section = |line: &Line| line.section == section && line.size == size;
        let same = |line: &Line| of_section(line) && line.name == row.name && line.variant == row.variant;
        let place = self.lines.iter().position(same).unwrap_or_else(|| {
            let place = self.lines.iter().rposition(of_section).map_or(self.lines.len(), |last| last + 1);
            let line = Line {
                section: section.into(),
                size,
                name: row.name.clone(),
                variant: row.variant.clone(),
                cells: Vec::new(),
            };
            self.lines.insert(place, line);
            place
        });
        #[expect(clippy::indexing_slicing, reason = "the place of a line that was found, or has just been inserted")]
        &mut self.lines[place]
    }

    /// Returns the column of a program.
    pub fn place(&self, program: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.about.name == program)
    }
}

impl Line {
    /// Adds a round of a program.
    fn round(&mut self, column: usize, row: Row) {
        if self.cells.len() <= column {
            self.cells.resize(column + 1, None);
        }
        let Some(cell) = self.cells.get_mut(column) else { return };
        let cell = cell.get_or_insert_with(|| Cell {
            count: row.count,
            expected: row.expected,
            allocations: row.allocations,
            bytes: row.bytes,
            note: row.note.clone(),
            ..Cell::default()
        });
        if !row.samples.is_empty() {
            cell.rounds.push(row.samples.median());
        }
        if badness(&row.verdict) > badness(&cell.verdict) {
            cell.verdict = row.verdict;
            cell.count = row.count;
        }
    }

    /// Returns the result in a column.
    pub fn cell(&self, column: usize) -> Option<&Cell> {
        self.cells.get(column)?.as_ref()
    }

    /// Returns the name with the variant.
    pub fn label(&self) -> String {
        match &self.variant {
            Some(variant) => format!("{} ({variant})", self.name),
            None => self.name.clone(),
        }
    }
}

impl Cell {
    /// Returns the median of the rounds' medians. `None` without measurements.
    pub fn time(&self) -> Option<Duration> {
        (!self.rounds.is_empty()).then(|| self.rounds.median())
    }

    /// Returns the time unless the result was wrong: a wrong result is no baseline and has no ratio.
    pub fn usable_time(&self) -> Option<Duration> {
        match self.verdict {
            Verdict::Unchecked | Verdict::Right => self.time(),
            Verdict::Wrong(_) | Verdict::Unsupported(_) => None,
        }
    }
}

fn badness(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::Unchecked => 0,
        Verdict::Right => 1,
        Verdict::Unsupported(_) => 2,
        Verdict::Wrong(_) => 3,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn report(program: &str, rows: &[(&str, u64, Verdict)]) -> Report {
        let about = About { name: program.into(), version: "1".into(), settings: String::new() };
        let mut report = Report { about, ..Report::default() };
        for (name, micros, verdict) in rows {
            let samples = [Duration::from_micros(*micros)].into_iter().collect();
            report.push("Queries", None, Row { samples, verdict: verdict.clone(), ..Row::new(*name) });
        }
        report
    }

    #[test]
    fn rounds_of_one_program_are_one_column_with_the_median_of_their_medians() {
        let rounds = [9, 1, 5].map(|micros| report("a", &[("scan", micros, Verdict::Right)]));
        let joined = Joined::new(rounds);
        assert_eq!(joined.columns.len(), 1);
        assert_eq!(joined.columns[0].rounds, 3);
        assert_eq!(joined.lines[0].cell(0).unwrap().time(), Some(Duration::from_micros(5)));
    }

    #[test]
    fn one_wrong_round_makes_the_cell_wrong_and_no_baseline() {
        let wrong = Verdict::Wrong("7 rows, not 8".into());
        let joined = Joined::new([
            report("a", &[("scan", 1, Verdict::Right)]),
            report("a", &[("scan", 1, wrong.clone())]),
            report("a", &[("scan", 1, Verdict::Right)]),
        ]);
        let cell = joined.lines[0].cell(0).unwrap();
        assert_eq!((&cell.verdict, cell.usable_time()), (&wrong, None));
        assert!(cell.time().is_some());
    }

    #[test]
    fn a_row_that_one_program_lacks_is_an_empty_cell() {
        let joined = Joined::new([
            report("a", &[("scan", 1, Verdict::Right)]),
            report("b", &[("scan", 2, Verdict::Right), ("sort", 3, Verdict::Right)]),
        ]);
        assert_eq!(joined.lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["scan", "sort"]);
        assert_eq!(joined.lines[1].cells[0], None);
        assert_eq!(joined.lines[0].cells.len(), 2);
    }

    #[test]
    fn lines_of_a_section_stay_together() {
        let mut first = report("a", &[("scan", 1, Verdict::Right)]);
        first.push("Writes", None, Row::new("insert"));
        let second = report("b", &[("sort", 1, Verdict::Right)]);
        let names: Vec<_> = Joined::new([first, second]).lines.into_iter().map(|line| line.name).collect();
        assert_eq!(names, ["scan", "sort", "insert"]);
    }
}
