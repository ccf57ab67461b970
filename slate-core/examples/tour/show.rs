use std::{
    error::Error,
    io::IsTerminal,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use slate_core::{Collection, Find};

use crate::{
    questions::{Asks, Question},
    records::Record,
};

/// Prints the tour: in colour on a terminal, plain elsewhere.
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

    /// Hidden where standard error is no terminal.
    pub(crate) fn progress(&self, length: usize, what: &'static str) -> ProgressBar {
        let bar = ProgressBar::new(length as u64).with_message(what);
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {eta}") {
            bar.set_style(style);
        }
        bar
    }

    /// Asks the question, and prints what it is, how long it took, how many rows it gave and its plan.
    pub(crate) fn question(&self, records: &Collection<Record>, question: &Question) -> Result<(), Box<dyn Error>> {
        let find = || find(records, question);
        let started = Instant::now();
        let rows = match question.asks {
            Asks::Documents => {
                let (mut cursor, mut rows) = (find().cursor()?, 0);
                while cursor.advance()? {
                    rows += 1;
                }
                let unit = if rows == 1 { "row" } else { "rows" };
                format!("{} {unit}", grouped(rows))
            }
            Asks::Count => format!("count {}", grouped(usize::try_from(find().count()?)?)),
            Asks::Distinct(path) => format!("{} values", grouped(find().distinct(path)?.len())),
        };
        let took = started.elapsed();
        let plan = match question.asks {
            Asks::Documents => find().explain()?,
            Asks::Count => find().explain_count()?,
            Asks::Distinct(path) => find().explain_distinct(path)?,
        };
        println!("\n{}", self.paint("1", question.about));
        println!("  {}", self.paint("33", &asked(question)));
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

fn find(records: &Collection<Record>, question: &Question) -> Find<Record> {
    let mut find = records.find(&question.filter).skip(question.skip);
    if !question.sort.is_empty() {
        find = find.sort(&question.sort);
    }
    if !question.projection.is_empty() {
        find = find.project(&question.projection);
    }
    match question.limit {
        Some(limit) => find.limit(limit),
        None => find,
    }
}

/// The question as one would write it.
fn asked(question: &Question) -> String {
    let mut asked = match question.asks {
        Asks::Documents => format!("find({})", question.filter),
        Asks::Count => format!("count({})", question.filter),
        Asks::Distinct(path) => format!("distinct({path:?}, {})", question.filter),
    };
    for (name, document) in [("sort", &question.sort), ("project", &question.projection)] {
        if !document.is_empty() {
            asked.push_str(&format!(".{name}({document})"));
        }
    }
    if question.skip > 0 {
        asked.push_str(&format!(".skip({})", question.skip));
    }
    if let Some(limit) = question.limit {
        asked.push_str(&format!(".limit({limit})"));
    }
    asked
}

/// A number with its thousands apart: 12,345.
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
