//! Formats joined reports as a Markdown page.

use std::fmt::{self, Display, Write};

use super::{Cell, Column, Goal, Goals, Joined, Line, Reach};
use crate::{
    Align, Table, Verdict,
    format::{bytes, count, duration, factor, percent, size, three_digits},
};

/// Returns the page: the programs, the table, unsupported and wrong rows, and the number of goals reached.
pub fn markdown(joined: &Joined, goals: &Goals) -> String {
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut page, joined, goals);
    page
}

fn write_page(page: &mut String, joined: &Joined, goals: &Goals) -> fmt::Result {
    programs(page, joined)?;
    let mut notes = Notes::default();
    writeln!(page, "{}", table(joined, goals, &mut notes))?;
    notes.write(page)?;
    summary(page, joined, goals)
}

/// Lists the programs and machines.
fn programs(page: &mut String, joined: &Joined) -> fmt::Result {
    if let Some(first) = joined.columns.first() {
        let machine = &first.machine;
        let memory = machine.memory.map_or_else(String::new, |memory| format!(", {} of memory", bytes(memory)));
        writeln!(page, "{}, {}{memory}; {} UTC.\n", machine.processor, machine.system, first.date)?;
    }
    let mut table = Table::new(&[
        ("program", Align::Left),
        ("version", Align::Left),
        ("settings", Align::Left),
        ("rounds", Align::Right),
    ]);
    for column in &joined.columns {
        let about = &column.about;
        table.row([about.name.as_str(), &about.version, &about.settings, &column.rounds.to_string()]);
    }
    writeln!(page, "{table}")
}

/// Numbered footnotes; equal notes share a number.
#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    fn number(&mut self, note: String) -> usize {
        let place = self.0.iter().position(|known| *known == note);
        1 + place.unwrap_or_else(|| {
            self.0.push(note);
            self.0.len() - 1
        })
    }

    fn write(&self, page: &mut String) -> fmt::Result {
        for (place, note) in self.0.iter().enumerate() {
            writeln!(page, "{}. {note}", place + 1)?;
        }
        if self.0.is_empty() { Ok(()) } else { writeln!(page) }
    }
}

fn table(joined: &Joined, goals: &Goals, notes: &mut Notes) -> Table {
    let aiming: Vec<bool> = joined.columns.iter().map(|column| has_goals(joined, goals, &column.about.name)).collect();
    let mut columns = vec![("", Align::Left), ("rows", Align::Right)];
    for (column, aims) in joined.columns.iter().zip(&aiming) {
        columns.push((column.about.name.as_str(), Align::Right));
        if *aims {
            columns.push(("must / aim", Align::Left));
        }
    }
    let mut table = Table::new(&columns);
    let mut heading = None;
    for line in &joined.lines {
        let of = Some((&line.section, line.size));
        if heading != of {
            heading = of;
            let records = line.size.map_or_else(String::new, |records| format!(", {}", size(records)));
            table.row([format!("**{}{records}**", line.section)]);
        }
        let mut cells = vec![line.label(), expected(line)];
        for (place, (column, aims)) in joined.columns.iter().zip(&aiming).enumerate() {
            let ratio = goals.ratio(joined, line, place);
            cells.push(line.cell(place).map_or_else(String::new, |cell| shown(cell, ratio, &column.about.name, notes)));
            if *aims {
                cells.push(goals.goal(line, &column.about.name).map_or_else(String::new, |goal| reached(goal, ratio)));
            }
        }
        table.row(cells);
    }
    table
}

fn has_goals(joined: &Joined, goals: &Goals, program: &str) -> bool {
    joined.lines.iter().any(|line| goals.goal(line, program).is_some())
}

/// Returns the expected number of result rows from any program that reports it.
fn expected(line: &Line) -> String {
    let known = line.cells.iter().flatten().find_map(|cell| cell.expected.or(cell.count));
    known.map_or_else(String::new, count)
}

/// Formats a result: its time or bytes, the ratio, and a footnote if it is wrong or unsupported. Remarks on correct
/// rows are only in the reports.
fn shown(cell: &Cell, ratio: Option<f64>, program: &str, notes: &mut Notes) -> String {
    let time = match (cell.time(), cell.bytes) {
        (Some(time), _) => duration(time),
        (None, Some(number)) => bytes(number),
        (None, None) => "–".into(),
    };
    match &cell.verdict {
        Verdict::Unsupported(why) => format!("– [{}]", notes.number(format!("{program}: not supported: {why}"))),
        Verdict::Wrong(how) => format!("**wrong** {time} [{}]", notes.number(format!("{program}: wrong: {how}"))),
        Verdict::Unchecked | Verdict::Right => match ratio {
            Some(ratio) => format!("{time} {}", factor(ratio)),
            None => time,
        },
    }
}

fn reached(goal: Goal, ratio: Option<f64>) -> String {
    let aim = goal.aim.map_or_else(|| "–".into(), three_digits);
    let reach = match ratio.map(|ratio| goal.reach(ratio)) {
        Some(Reach::Aim) => ": aim",
        Some(Reach::Must) => ": must",
        Some(Reach::Short) => ": **short**",
        None => "",
    };
    format!("{} / {aim}{reach}", three_digits(goal.must))
}

/// Counts the goals that each program reached, and lists the missed ones.
fn summary(page: &mut String, joined: &Joined, goals: &Goals) -> fmt::Result {
    for (place, column) in joined.columns.iter().enumerate() {
        let program = &column.about.name;
        let reaches: Vec<(Reach, String)> = joined
            .lines
            .iter()
            .filter_map(|line| {
                let reach = goals.goal(line, program)?.reach(goals.ratio(joined, line, place)?);
                Some((reach, line.label()))
            })
            .collect();
        if reaches.is_empty() {
            continue;
        }
        let many = |least: Reach| reaches.iter().filter(|(reach, _)| *reach >= least).count();
        let short: Vec<&str> =
            reaches.iter().filter(|(reach, _)| *reach == Reach::Short).map(|(_, label)| label.as_str()).collect();
        let short = if short.is_empty() { String::new() } else { format!("; short: {}", short.join(", ")) };
        let (aim, must, all) = (many(Reach::Aim), many(Reach::Must), reaches.len());
        writeln!(page, "- {program}: of {all} rows with goals, {must} reach `must`, {aim} of them `aim`{short}")?;
    }
    let missing: Vec<&str> = goals.missing(joined).collect();
    let is_selection = |column: &Column| column.command.iter().any(|argument| argument.starts_with("--only"));
    if !missing.is_empty() && !joined.columns.iter().any(is_selection) {
        writeln!(page, "- rows with goals that were not measured: {}", missing.join(", "))?;
    }
    let spread = joined.lines.iter().flat_map(|line| line.cells.iter().flatten()).map(|cell| cell.rounds.spread());
    let worst = spread.fold(0.0, f64::max);
    writeln!(page, "- spread between rounds (middle half, as a share of the median): {} at most", Percent(worst))
}

struct Percent(f64);

impl Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&percent(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::joined::tests::report, *};

    #[test]
    fn the_page_has_ratios_goals_and_what_is_wrong() {
        let goals: Goals = serde_json::from_str(
            r#"{"baselines": {"*": ["theirs"]},
                "groups": [{"name": "all", "rows": ["scan", "sort", "join"], "goals": {"mine": {"must": 4, "aim": 10}}}]}"#,
        )
        .unwrap();
        let joined = Joined::new([
            report("mine", &[("scan", 2, Verdict::Right), ("sort", 5, Verdict::Right)]),
            report("theirs", &[("scan", 20, Verdict::Right), ("sort", 10, Verdict::Right)]),
            report(
                "other",
                &[("scan", 1, Verdict::Wrong("7 rows".into())), ("sort", 0, Verdict::Unsupported("no".into()))],
            ),
        ]);
        let page = markdown(&joined, &goals);
        let shown: Vec<String> =
            page.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let has = |line: &str| assert!(shown.iter().any(|shown| shown == line), "{line} is not in\n{page}");
        has("| scan | | 2.00 µs 10.0× | 4.00 / 10.0: aim | 20.0 µs | **wrong** 1.00 µs [1] |");
        has("| sort | | 5.00 µs 2.00× | 4.00 / 10.0: **short** | 10.0 µs | – [2] |");
        assert!(page.contains("1. other: wrong: 7 rows\n2. other: not supported: no\n"), "{page}");
        assert!(page.contains("- mine: of 2 rows with goals, 1 reach `must`, 1 of them `aim`; short: sort"));
        assert!(page.contains("rows with goals that were not measured: join"));
    }
}
