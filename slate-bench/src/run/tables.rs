//! A report as tables, shaped as the workload's.

use std::fmt::Write;

use slate_bench_harness::{Align, Report, Row, Section, Table, Verdict, format, number};

/// The report in Markdown.
pub fn markdown(report: &Report) -> String {
    let mut text = String::new();
    let about = &report.about;
    let _ = writeln!(
        text,
        "# {} {}\n\n{}; {}, {} cores, {}; {}.",
        about.name,
        about.version,
        about.settings,
        report.machine.processor,
        report.machine.cores,
        report.machine.system,
        report.date
    );
    for section in &report.sections {
        let size = section.size.map_or_else(String::new, |size| format!("{} records: ", format::size(size)));
        let _ = write!(text, "\n## {size}{}\n\n{}", section.title, table(section));
    }
    text
}

fn table(section: &Section) -> Table {
    let mut table = Table::new(&[
        ("operation", Align::Left),
        ("", Align::Left),
        ("median", Align::Right),
        ("p95", Align::Right),
        ("spread", Align::Right),
        ("runs", Align::Right),
        ("result", Align::Right),
        ("allocations", Align::Right),
        ("keys", Align::Right),
        ("documents", Align::Right),
        ("notes", Align::Left),
    ]);
    section.rows.iter().for_each(|row| table.row(cells(row)));
    table
}

fn cells(row: &Row) -> [String; 11] {
    let time = |time| if row.samples.is_empty() { String::new() } else { format::duration(time) };
    let counted = |count: Option<u64>| count.map_or_else(String::new, format::count);
    let note = match &row.verdict {
        Verdict::Wrong(how) => format!("WRONG: {how}"),
        Verdict::Unsupported(why) => format!("not supported: {why}"),
        Verdict::Right | Verdict::Unchecked => row.note.clone().unwrap_or_default(),
    };
    [
        row.name.clone(),
        row.variant.clone().unwrap_or_default(),
        time(row.samples.median()),
        time(row.samples.p95()),
        if row.samples.is_empty() { String::new() } else { format::percent(row.samples.spread()) },
        counted(Some(number::count(row.samples.len()))),
        row.bytes.map_or_else(|| counted(row.count), format::bytes),
        counted(row.allocations.map(|allocations| allocations.count)),
        counted(row.keys_read),
        counted(row.documents_read),
        note,
    ]
}
