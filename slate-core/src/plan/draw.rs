//! Formats plans as trees for people and as documents for programs.

use bson::{Document, doc};

use super::{Analysis, Measures, Node, Plan, shape::shape, shown::ShownNode, table};
use crate::explain::PlanShape;

impl ShownNode {
    /// Appends the lines of the tree, each with the measures of its node.
    fn lines(&self, first: &str, others: &str, lines: &mut Vec<(String, Measures)>) {
        let space = if self.line.is_empty() { "" } else { " " };
        lines.push((format!("{first}{}{space}{}", self.stage.title, self.line), self.measures.unwrap_or_default()));
        let last = self.inputs.len().saturating_sub(1);
        for (at, input) in self.inputs.iter().enumerate() {
            let (branch, trunk) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            input.lines(&format!("{others}{branch}"), &format!("{others}{trunk}"), lines);
        }
    }

    fn describe(&self) -> Document {
        let mut document = doc! { "stage": self.stage.name };
        document.extend(self.details.clone());
        document.extend(self.measures.iter().flat_map(Measures::describe));
        let mut inputs: Vec<Document> = self.inputs.iter().map(Self::describe).collect();
        match (inputs.pop(), inputs.is_empty()) {
            (None, _) => {}
            (Some(only), true) => drop(document.insert("input", only)),
            (Some(last), false) => {
                inputs.push(last);
                document.insert("inputs", inputs);
            }
        }
        document
    }
}

/// A plan with the rules that changed it, and with what its execution has measured.
pub(crate) struct Drawing {
    root: ShownNode,
    rules: Vec<&'static str>,
    storage_bytes: Option<u64>,
    round_trips: Option<u64>,
    requests: Option<u64>,
}

impl Drawing {
    pub(crate) fn new(plan: &Plan, rules: Vec<&'static str>, collection: &str) -> Self {
        Self { root: plan.shown(collection), rules, storage_bytes: None, round_trips: None, requests: None }
    }

    /// Adds the measures of the nodes.
    pub(super) fn measure(&mut self, analysis: &Analysis) {
        self.root.measure(&mut analysis.nodes.iter());
        self.storage_bytes = analysis.storage_bytes;
        (self.round_trips, self.requests) = (analysis.round_trips, analysis.requests);
    }

    /// Formats the plan as a tree, root first, next to a table of measures; then the bytes
    /// that the store read from its files or received over a network, its round trips, and the rules that changed the plan.
    pub(crate) fn draw(&self) -> String {
        let mut lines = Vec::new();
        self.root.lines("", "", &mut lines);
        let mut drawn = if self.root.measures.is_some() {
            table::draw(&lines)
        } else {
            lines.into_iter().map(|(line, _)| line).collect::<Vec<_>>().join("\n")
        };
        let bytes = self.storage_bytes.filter(|bytes| *bytes > 0).map(table::size);
        if let Some(round_trips) = self.round_trips {
            drawn.push_str(&format!("\nround trips: {round_trips}"));
            let more = [self.requests.map(|n| format!(", requests: {n}")), bytes.map(|n| format!(", received: {n}"))];
            more.iter().flatten().for_each(|more| drawn.push_str(more));
        } else if let Some(bytes) = bytes {
            drawn.push_str(&format!("\nread from files: {bytes}"));
        }
        if !self.rules.is_empty() {
            drawn.push_str(&format!("\nrules: {}", self.rules.join(", ")));
        }
        drawn
    }

    /// Formats the plan as a document.
    pub(crate) fn describe(&self) -> Document {
        let mut document = self.root.describe();
        document.insert("rules", self.rules.clone());
        document
    }

    /// Returns the plan as MongoDB's `explain` shows it.
    pub(super) fn shape(&self) -> PlanShape {
        shape(&self.root)
    }

    /// Returns whether the plan reads an index other than the one on `_id`.
    pub(super) fn reads_index(&self) -> bool {
        self.root.reads_index()
    }
}
