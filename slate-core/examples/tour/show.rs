use std::{
    error::Error,
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use slate_core::{Collection, ExplainVerbosity, Find};

use crate::{
    queries::{Output, SampleQuery},
    records::Record,
};

/// Prints the tour, in color on a terminal.
pub(crate) struct Show {
    colour: bool,
}

impl Show {
    pub(crate) fn new() -> Self {
        Self { colour: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() }
    }

    pub(crate) fn title(&self, text: &str) {
        println!("\n{}\n{}", self.paint("1;36", text), "═".repeat(text.chars().count()));
    }

    pub(crate) fn fact(&self, text: &str, took: Duration) {
        println!("{text:<66} {:>12}", self.paint("32", &time(took)));
    }

    pub(crate) fn note(&self, text: &str) {
        println!("{text}");
    }

    /// Hidden if standard error is not a terminal.
    pub(crate) fn progress(&self, length: usize, what: &'static str) -> ProgressBar {
        let bar = ProgressBar::new(length as u64).with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {eta}") {
            bar.set_style(style);
        }
        bar
    }

    /// Runs the query, and prints its text, time, number of rows and plan.
    pub(crate) fn query(&self, records: &Collection<Record>, query: &SampleQuery) -> Result<(), Box<dyn Error>> {
        let find = || find(records, query);
        let started = Instant::now();
        let rows = match query.output {
            Output::Documents => {
                let (mut cursor, mut rows) = (find().cursor()?, 0);
                while cursor.advance()? {
                    rows += 1;
                }
                let unit = if rows == 1 { "row" } else { "rows" };
                format!("{} {unit}", grouped(rows))
            }
            Output::Count => format!("count {}", grouped(usize::try_from(find().count().run()?)?)),
            Output::Distinct(path) => format!("{} values", grouped(find().distinct(path).run()?.len())),
        };
        let took = started.elapsed();
        let plan = match query.output {
            Output::Documents => find().explain(ExplainVerbosity::QueryPlanner)?,
            Output::Count => find().count().explain(ExplainVerbosity::QueryPlanner)?,
            Output::Distinct(path) => find().distinct(path).explain(ExplainVerbosity::QueryPlanner)?,
        };
        println!("\n{}", self.paint("1", query.about));
        println!("  {}", self.paint("33", &code(query)));
        for line in plan.to_string().lines() {
            println!("    {line}");
        }
        println!("  {rows:<64} {:>12}", self.paint("32", &time(took)));
        Ok(())
    }

    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }
}

fn find(records: &Collection<Record>, query: &SampleQuery) -> Find<Record> {
    let mut find = records.find(&query.filter).skip(query.skip);
    if !query.sort.is_empty() {
        find = find.sort(&query.sort);
    }
    if !query.projection.is_empty() {
        find = find.projection(&query.projection);
    }
    match query.limit {
        Some(limit) => find.limit(limit),
        None => find,
    }
}

/// Formats the query as code.
fn code(query: &SampleQuery) -> String {
    let mut code = match query.output {
        Output::Documents => format!("find({})", query.filter),
        Output::Count => format!("count({})", query.filter),
        Output::Distinct(path) => format!("distinct({path:?}, {})", query.filter),
    };
    for (name, document) in [("sort", &query.sort), ("project", &query.projection)] {
        if !document.is_empty() {
            code.push_str(&format!(".{name}({document})"));
        }
    }
    if query.skip > 0 {
        code.push_str(&format!(".skip({})", query.skip));
    }
    if let Some(limit) = query.limit {
        code.push_str(&format!(".limit({limit})"));
    }
    code
}

/// Formats a number with thousands separators: 12,345.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn time(took: Duration) -> String {
    let micros = took.as_secs_f64() * 1e6;
    if micros < 1_000.0 { format!("{micros:.0} µs") } else { format!("{:.1} ms", micros / 1_000.0) }
}
