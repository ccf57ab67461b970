//! Formats a report as the workload's tables.

use std::fmt::Write;

use slate_bench_harness::{Align, Report, Row, Section, Table, Verdict, format, number};

use crate::workload::{BULK_INSERT, CONCURRENCY, DISTINCT, LARGER, QUERIES, SPACE, UPSERT_MERGE, WRITES, query_rows};

/// Formats the report as Markdown: the tables of each size, then the scaling table.
pub fn markdown(report: &Report) -> String {
    let mut text = heading(report);
    for size in sizes(report) {
        let _ = write!(text, "\n## {} Records\n", format::size(size));
        for section in report.sections.iter().filter(|section| section.size == Some(size)) {
            let _ = write!(text, "\n### {}\n\n{}", section.title, table(section));
        }
    }
    let scaling = scaling(report);
    if !scaling.is_empty() {
        let sizes: Vec<_> = sizes(report).into_iter().map(format::size).collect();
        let _ = write!(text, "\n## Scaling: {}\n\n{scaling}", sizes.join(" → "));
    }
    text
}

fn heading(report: &Report) -> String {
    let (about, machine) = (&report.about, &report.machine);
    let memory = machine.memory.map_or_else(String::new, |bytes| format!(", {} of memory", format::bytes(bytes)));
    let cores = if machine.cores == 1 { "1 core".into() } else { format!("{} cores", machine.cores) };
    format!(
        "# {} {}\n\n{}. {}, {cores}{memory}, {}. {} UTC, seed {}.\n\n    {}\n",
        about.name,
        about.version,
        about.settings,
        machine.processor,
        machine.system,
        report.date,
        report.seed,
        report.command.join(" ")
    )
}

fn sizes(report: &Report) -> Vec<u64> {
    let mut sizes: Vec<u64> = report.sections.iter().filter_map(|section| section.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The rows with one name. `first` is the lent row, or the only one.
struct Line<'r> {
    first: &'r Row,
    owned: Option<&'r Row>,
}

fn lines(section: &Section) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for row in &section.rows {
        match lines.last_mut() {
            Some(line) if line.first.name == row.name && line.owned.is_none() => line.owned = Some(row),
            _ => lines.push(Line { first: row, owned: None }),
        }
    }
    lines
}

type Column = (&'static str, Align, fn(&Line<'_>) -> String);

fn table(section: &Section) -> Table {
    match section.title.as_str() {
        QUERIES => columns(
            section,
            &[
                ("Query", Align::Left, name),
                ("Lent", Align::Right, median),
                ("p95", Align::Right, p95),
                ("Spread", Align::Right, spread),
                ("Best", Align::Right, best),
                ("Owned", Align::Right, |line| line.owned.map_or_else(String::new, time)),
                ("Records", Align::Right, result),
                ("Allocations", Align::Right, allocations),
                ("per row", Align::Right, allocations_per_row),
                ("Peak", Align::Right, peak),
                ("Keys", Align::Right, |line| counted(line.first.keys_read)),
                ("Documents", Align::Right, |line| counted(line.first.documents_read)),
                ("Notes", Align::Left, note),
            ],
        ),
        DISTINCT => columns(
            section,
            &[
                ("Query", Align::Left, name),
                ("Time", Align::Right, median),
                ("p95", Align::Right, p95),
                ("Spread", Align::Right, spread),
                ("Best", Align::Right, best),
                ("Values", Align::Right, result),
                ("Allocations", Align::Right, allocations),
                ("Peak", Align::Right, peak),
                ("Keys", Align::Right, |line| counted(line.first.keys_read)),
                ("Documents", Align::Right, |line| counted(line.first.documents_read)),
                ("Notes", Align::Left, note),
            ],
        ),
        BULK_INSERT | UPSERT_MERGE => columns(
            section,
            &[
                ("Operation", Align::Left, name),
                ("Time", Align::Right, median),
                ("p95", Align::Right, p95),
                ("Spread", Align::Right, spread),
                ("Best", Align::Right, best),
                ("Per Record", Align::Right, per_item),
                ("Allocations", Align::Right, allocations),
                ("per record", Align::Right, allocations_per_row),
                ("Peak", Align::Right, peak),
                ("Notes", Align::Left, note),
            ],
        ),
        LARGER => columns(
            section,
            &[
                ("Operation", Align::Left, name),
                ("Median", Align::Right, median),
                ("p99", Align::Right, p99),
                ("Spread", Align::Right, spread),
                ("Records", Align::Right, result),
                ("Notes", Align::Left, note),
            ],
        ),
        SPACE => columns(
            section,
            &[
                ("", Align::Left, name),
                ("Bytes", Align::Right, |line| line.first.bytes.map_or_else(String::new, format::bytes)),
                ("Notes", Align::Left, note),
            ],
        ),
        _ => columns(
            section,
            &[
                (if section.title == CONCURRENCY { "Test" } else { "Check" }, Align::Left, name),
                ("Time", Align::Right, median),
                ("p95", Align::Right, p95),
                ("Spread", Align::Right, spread),
                ("Result", Align::Left, |line| match note(line) {
                    note if note.is_empty() => "sound".into(),
                    note => note,
                }),
            ],
        ),
    }
}

fn columns(section: &Section, columns: &[Column]) -> Table {
    let lines = lines(section);
    // Leaves out a column that is empty in every line: not every database reports its work.
    let shown = columns.iter().filter(|(_, _, cell)| lines.iter().any(|line| !cell(line).is_empty()));
    let shown: Vec<&Column> = shown.collect();
    let mut table = Table::new(&shown.iter().map(|(name, align, _)| (*name, *align)).collect::<Vec<_>>());
    for line in &lines {
        table.row(shown.iter().map(|(_, _, cell)| cell(line)));
    }
    table
}

fn name(line: &Line<'_>) -> String {
    line.first.name.clone()
}

fn of_samples(row: &Row, cell: impl FnOnce(&Row) -> String) -> String {
    if row.samples.is_empty() { String::new() } else { cell(row) }
}

fn time(row: &Row) -> String {
    of_samples(row, |row| format::duration(row.samples.median()))
}

fn median(line: &Line<'_>) -> String {
    time(line.first)
}

fn p95(line: &Line<'_>) -> String {
    of_samples(line.first, |row| format::duration(row.samples.p95()))
}

fn p99(line: &Line<'_>) -> String {
    of_samples(line.first, |row| format::duration(row.samples.quantile(0.99)))
}

fn best(line: &Line<'_>) -> String {
    of_samples(line.first, |row| format::duration(row.samples.min()))
}

fn spread(line: &Line<'_>) -> String {
    of_samples(line.first, |row| format::percent(row.samples.spread()))
}

fn per_item(line: &Line<'_>) -> String {
    let items = u32::try_from(line.first.items).ok().filter(|items| *items > 0);
    items.map_or_else(String::new, |items| of_samples(line.first, |row| format::duration(row.samples.median() / items)))
}

fn counted(count: Option<u64>) -> String {
    count.map_or_else(String::new, format::count)
}

fn result(line: &Line<'_>) -> String {
    counted(line.first.count)
}

/// Formats one number of each of a line's rows.
fn each(line: &Line<'_>, cell: impl Fn(&Row) -> Option<String>) -> String {
    let cells: Vec<_> = std::iter::once(line.first).chain(line.owned).filter_map(cell).collect();
    cells.join(" / ")
}

fn allocations(line: &Line<'_>) -> String {
    each(line, |row| Some(format::count(row.allocations?.count)))
}

fn allocations_per_row(line: &Line<'_>) -> String {
    each(line, |row| {
        let rows = row.count.filter(|rows| *rows > 0)?;
        Some(format!("{:.2}", number::float(row.allocations?.count) / number::float(rows)))
    })
}

fn peak(line: &Line<'_>) -> String {
    each(line, |row| Some(format::bytes(row.allocations?.peak)))
}

fn note(line: &Line<'_>) -> String {
    let said = |row: &Row| match &row.verdict {
        Verdict::Wrong(how) => Some(format!("**WRONG**: {how}")),
        Verdict::Unsupported(why) => Some(format!("not supported: {why}")),
        Verdict::Right | Verdict::Unchecked => None,
    };
    let rows = std::iter::once(line.first).chain(line.owned);
    rows.filter_map(said).next().or_else(|| line.first.note.clone()).unwrap_or_default()
}

/// Returns the scaling table: the median for each size, and the factor from the first size to the last.
fn scaling(report: &Report) -> Table {
    let sizes = sizes(report);
    let mut header = vec![("Query".to_owned(), Align::Left)];
    header.extend(sizes.iter().map(|size| (format::size(*size), Align::Right)));
    header.push(("Factor".into(), Align::Right));
    let mut table = Table::new(&header.iter().map(|(name, align)| (name.as_str(), *align)).collect::<Vec<_>>());
    let [first, .., last] = sizes.as_slice() else { return table };
    for (section, name, called) in scaled() {
        let median = |size: u64| {
            let rows = &report.section(section, Some(size))?.rows;
            let row = rows.iter().find(|row| row.name == name || called == BULK_INSERT)?;
            (!row.samples.is_empty()).then(|| row.samples.median())
        };
        let (Some(small), Some(large)) = (median(*first), median(*last)) else { continue };
        let factor = format::factor(number::ratio(large.as_secs_f64(), small.as_secs_f64()));
        let times = sizes.iter().map(|size| median(*size).map_or_else(String::new, format::duration));
        table.row(std::iter::once(called.to_owned()).chain(times).chain([factor]));
    }
    table
}

/// Returns the rows of the scaling table: section, name in its own table, name in the scaling table.
fn scaled() -> Vec<(&'static str, &'static str, &'static str)> {
    let queries = query_rows(0, 0).into_iter().filter_map(|row| Some((row.section, row.name, row.scaling?)));
    let writes = WRITES.iter().filter_map(|row| Some((UPSERT_MERGE, row.name, row.scaling?)));
    // The name of this row contains the size; it is the only row of its section.
    std::iter::once((BULK_INSERT, "", BULK_INSERT)).chain(queries).chain(writes).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use slate_bench_harness::{About, Allocations, Unsupported};

    use super::*;

    fn row(name: &str, milliseconds: u64) -> Row {
        let samples = [Duration::from_millis(milliseconds)].into_iter().collect();
        Row { samples, verdict: Verdict::Right, count: Some(10), ..Row::new(name) }
    }

    fn report() -> Report {
        let mut report = Report::begin("slate-bench", About::default(), 42);
        for (size, factor) in [(10_000, 1), (100_000, 12)] {
            let counted = |count| Some(Allocations { count, bytes: 0, peak: 0 });
            let lent = Row { allocations: counted(0), ..row("Full scan (no filter)", factor).variant("lent") };
            let owned = Row { allocations: counted(10), ..row("Full scan (no filter)", 2 * factor).variant("owned") };
            report.push(BULK_INSERT, Some(size), row(&format!("10 batches of {}", size / 10), 20 * factor));
            report.push(QUERIES, Some(size), lent);
            report.push(QUERIES, Some(size), owned);
            report.push(QUERIES, Some(size), Row::new("tags").failed(&Unsupported::because("no arrays").into()));
        }
        report
    }

    #[test]
    fn lent_and_owned_rows_share_a_line_and_empty_columns_are_omitted() {
        let text = markdown(&report());
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("Full scan")).collect();
        assert!(
            lines[0].contains("1.00 ms") && lines[0].contains("2.00 ms") && lines[0].contains("0.00 / 1.00"),
            "{text}"
        );
        assert!(!text.contains("Keys"), "{text}");
        assert!(text.contains("not supported: no arrays"), "{text}");
    }

    #[test]
    fn the_scaling_table_has_the_factor_from_the_first_size_to_the_last() {
        let text = markdown(&report());
        let (_, scaling) = text.split_once("## Scaling: 10k → 100k").unwrap();
        assert!(scaling.contains("12.0×") && scaling.contains("240 ms"), "{scaling}");
    }

    #[test]
    fn the_scaling_table_has_loads_queries_and_writes() {
        assert_eq!(scaled().len(), 1 + 17 + 4);
    }
}
