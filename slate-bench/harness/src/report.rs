//! What a run found, for machines: sections of rows, to JSON and back.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Allocations, Failure, Machine, Result, Samples, Unsupported};

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The database and, where it has several, its store: `"slate memory"`, `"sqlite file"`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it was set up, in words: `"deferred durability"`.
    pub settings: String,
}

/// A run of one bench on one database.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The bench: `"slate-bench"`, `"slate-store-bench"`.
    pub bench: String,
    /// What was measured.
    pub about: About,
    /// What it ran on.
    pub machine: Machine,
    /// When it began, in UTC.
    pub date: String,
    /// The command line, without the program's folder.
    pub command: Vec<String>,
    /// The seed of the data.
    pub seed: u64,
    /// What was found.
    pub sections: Vec<Section>,
}

/// Rows of one table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Section {
    /// Its heading: `"Queries"`.
    pub title: String,
    /// How many records each collection holds, where that is what tells sections of one title apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// What was measured.
    pub rows: Vec<Row>,
}

/// One operation, measured.
///
/// `name` and `variant` say what it is: rows of two reports that agree in them, and in their section's title and size, are
/// the same operation on two databases.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What it does: `"status = 'active'"`.
    pub name: String,
    /// How, where it is done in several ways: `"lent"`, `"owned"`, `"8 readers"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Whether what it gave was right.
    pub verdict: Verdict,
    /// How long it took, each time.
    #[serde(default, skip_serializing_if = "Samples::is_empty")]
    pub samples: Samples,
    /// How many things (records, keys, lookups) one sample is about, for times per thing. 0 where that says nothing.
    #[serde(default)]
    pub items: u64,
    /// How many rows, values or records came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// How many ought to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// What one run allocated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocations: Option<Allocations>,
    /// Keys that one run looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys_read: Option<u64>,
    /// Documents that one run read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub documents_read: Option<u64>,
    /// Bytes, where the row is about them: a file's size, a peak of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What a reader of the table ought to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Whether what an operation gave was right.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// There is nothing to compare with.
    #[default]
    Unchecked,
    /// As computed by brute force.
    Right,
    /// Not so, and how.
    Wrong(String),
    /// The database cannot do it, and why.
    Unsupported(String),
}

impl Row {
    /// An operation that nothing is known of yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// The same, done in this way.
    pub fn variant(mut self, variant: impl Into<String>) -> Self {
        self.variant = Some(variant.into());
        self
    }

    /// An operation that came to nothing: unsupported where the error says so, else wrong.
    pub fn failed(mut self, error: &Failure) -> Self {
        self.verdict = match Unsupported::reason(error) {
            Some(reason) => Verdict::Unsupported(reason.into()),
            None => Verdict::Wrong(crate::error::chain(error)),
        };
        self
    }

    /// The name with the variant.
    pub fn label(&self) -> String {
        match &self.variant {
            Some(variant) => format!("{} ({variant})", self.name),
            None => self.name.clone(),
        }
    }
}

impl Report {
    /// An empty report of a bench, that begins here and now.
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

    /// Puts a row into the section of that title and size, which is added at the end where there is none.
    pub fn push(&mut self, title: &str, size: Option<u64>, row: Row) {
        match self.sections.iter_mut().find(|section| section.title == title && section.size == size) {
            Some(section) => section.rows.push(row),
            None => self.sections.push(Section { title: title.into(), size, rows: vec![row] }),
        }
    }

    /// The section of that title and size.
    pub fn section(&self, title: &str, size: Option<u64>) -> Option<&Section> {
        self.sections.iter().find(|section| section.title == title && section.size == size)
    }

    /// What was wrong: where, and how.
    pub fn wrong(&self) -> Vec<String> {
        let rows = self.sections.iter().flat_map(|section| section.rows.iter().map(move |row| (section, row)));
        rows.filter_map(|(section, row)| {
            let Verdict::Wrong(how) = &row.verdict else { return None };
            let size = section.size.map_or_else(String::new, |size| format!("{}, ", crate::format::size(size)));
            Some(format!("{}{}, {}: {how}", size, section.title, row.label()))
        })
        .collect()
    }

    /// Reads a report.
    ///
    /// # Errors
    /// Where the file cannot be read or is no report.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?)
    }

    /// Writes the report.
    ///
    /// # Errors
    /// Where the file cannot be written.
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
    fn what_is_wrong_is_told_with_its_place() {
        assert_eq!(report().wrong(), ["10k, Queries, sort: boom"]);
    }

    #[test]
    fn sections_are_told_apart_by_size() {
        let report = report();
        assert_eq!(report.section("Queries", Some(10_000)).unwrap().rows.len(), 3);
        assert_eq!(report.section("Queries", Some(1_000)).unwrap().rows.len(), 1);
        assert!(report.section("Queries", None).is_none());
    }
}
