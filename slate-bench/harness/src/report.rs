//! The report of a run: sections of rows, as JSON.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Allocations, Failure, Machine, Result, Samples, Unsupported};

/// The measured database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The database and its store, if it has several: `"slate memory"`, `"sqlite file"`.
    pub name: String,
    /// Version of the database.
    pub version: String,
    /// Description of its settings: `"deferred durability"`.
    pub settings: String,
}

/// The report of one bench on one database.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the bench: `"slate-bench"`, `"slate-store-bench"`.
    pub bench: String,
    /// The measured database.
    pub about: About,
    /// The machine.
    pub machine: Machine,
    /// Start time in UTC.
    pub date: String,
    /// The command line without the program's directory.
    pub command: Vec<String>,
    /// Seed of the data.
    pub seed: u64,
    /// The results.
    pub sections: Vec<Section>,
}

/// The rows of one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Title: `"Queries"`.
    pub title: String,
    /// Records per collection, if there are sections for several sizes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// One measured operation.
///
/// Name and variant identify the row: rows of two reports with the same section title, size, name and variant are the
/// same operation on two databases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What the operation does: `"status = 'active'"`.
    pub name: String,
    /// The variant, if there are several: `"lent"`, `"owned"`, `"8 readers"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Whether the result was correct.
    pub verdict: Verdict,
    /// The measured times.
    #[serde(default, skip_serializing_if = "Samples::is_empty")]
    pub samples: Samples,
    /// Number of items (records, keys, lookups) per sample, for times per item. 0 if not meaningful.
    #[serde(default)]
    pub items: u64,
    /// Number of rows, values or records in the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Expected number of rows, values or records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// Allocations of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocations: Option<Allocations>,
    /// Keys read by one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys_read: Option<u64>,
    /// Documents read by one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_read: Option<u64>,
    /// Bytes, for rows about sizes: a file size, a memory peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Remarks for the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Whether the result of an operation was correct.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// There is no expected result.
    #[default]
    Unchecked,
    /// Equal to the result computed by brute force.
    Right,
    /// Wrong, with the difference.
    Wrong(String),
    /// The database does not support the operation, with the reason.
    Unsupported(String),
}

impl Row {
    /// Creates a row without results.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets the variant.
    pub fn variant(mut self, variant: impl Into<String>) -> Self {
        self.variant = Some(variant.into());
        self
    }

    /// Sets the verdict of a failed operation: unsupported if the error is [`Unsupported`], wrong otherwise.
    pub fn failed(mut self, error: &Failure) -> Self {
        self.verdict = match Unsupported::reason(error) {
            Some(reason) => Verdict::Unsupported(reason.into()),
            None => Verdict::Wrong(crate::error::chain(error)),
        };
        self
    }

    /// Returns the name with the variant.
    pub fn label(&self) -> String {
        match &self.variant {
            Some(variant) => format!("{} ({variant})", self.name),
            None => self.name.clone(),
        }
    }
}

impl Report {
    /// Creates an empty report with the current time and machine.
    pub fn begin(bench: &str, about: About, seed: u64) -> Self {
        let mut command: Vec<String> = std::env::args().collect();
        if let Some(program) = command.first_mut() {
            *program = Path::new(program).file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        }
        Self {
            bench: bench.into(),
            about,
            machine: Machine::here(),
            date: crate::machine::now(),
            command,
            seed,
            sections: Vec::new(),
        }
    }

    /// Adds a row to the section with this title and size, creating the section if necessary.
    pub fn push(&mut self, title: &str, size: Option<u64>, row: Row) {
        match self.sections.iter_mut().find(|section| section.title == title && section.size == size) {
            Some(section) => section.rows.push(row),
            None => self.sections.push(Section { title: title.into(), size, rows: vec![row] }),
        }
    }

    /// Returns the section with this title and size.
    pub fn section(&self, title: &str, size: Option<u64>) -> Option<&Section> {
        self.sections.iter().find(|section| section.title == title && section.size == size)
    }

    /// Returns a line for each wrong row: its size, section and name, and the difference.
    pub fn wrong(&self) -> Vec<String> {
        let rows = self.sections.iter().flat_map(|section| section.rows.iter().map(move |row| (section, row)));
        rows.filter_map(|(section, row)| {
            let Verdict::Wrong(how) = &row.verdict else { return None };
            let size = section.size.map_or_else(String::new, |size| format!("{}, ", crate::format::size(size)));
            Some(format!("{}{}, {}: {how}", size, section.title, row.label()))
        })
        .collect()
    }

    /// Reads a report from a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not a report.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?)
    }

    /// Writes the report to a file.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn report() -> Report {
        let about = About { name: "slate memory".into(), version: "0.1.0".into(), settings: "deferred".into() };
        let mut report = Report::begin("slate-bench", about, 42);
        let samples = [Duration::from_millis(2), Duration::from_millis(3)].into_iter().collect();
        let right = Row { samples, verdict: Verdict::Right, count: Some(7), ..Row::new("scan").variant("lent") };
        report.push("Queries", Some(10_000), right);
        report.push("Queries", Some(10_000), Row::new("sort").failed(&"boom".into()));
        report.push("Queries", Some(10_000), Row::new("count").failed(&Unsupported::because("no count").into()));
        report.push("Queries", Some(1_000), Row::new("scan"));
        report
    }

    #[test]
    fn a_report_is_the_same_after_a_round_through_json() {
        let report = report();
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    #[test]
    fn wrong_rows_are_reported_with_their_place() {
        assert_eq!(report().wrong(), ["10k, Queries, sort: boom"]);
    }

    #[test]
    fn sections_are_distinguished_by_size() {
        let report = report();
        assert_eq!(report.section("Queries", Some(10_000)).unwrap().rows.len(), 3);
        assert_eq!(report.section("Queries", Some(1_000)).unwrap().rows.len(), 1);
        assert!(report.section("Queries", None).is_none());
    }
}
