//! Formats the measures of a plan's nodes as columns in front of the tree, where they are aligned for node texts of any
//! length.

use std::time::Duration;

use super::Measures;

/// A column: its name and its value for a node.
type Column = (&'static str, fn(&Measures) -> String);

const COLUMNS: [Column; 6] = [
    ("rows", |measures| grouped(measures.rows)),
    ("keys", |measures| shown(measures.keys, grouped)),
    ("documents", |measures| shown(measures.documents, grouped)),
    ("read", |measures| shown(measures.bytes, size)),
    ("spilled", |measures| shown(measures.spills, |runs| format!("{} in {runs}", size(measures.spilled_bytes)))),
    ("time", |measures| time(measures.time)),
];

/// Draws the lines of a tree after the columns. Omits empty columns.
pub(super) fn draw(lines: &[(String, Measures)]) -> String {
    let columns: Vec<(&str, Vec<String>)> = COLUMNS
        .iter()
        .map(|(name, show)| (*name, lines.iter().map(|(_, measures)| show(measures)).collect::<Vec<_>>()))
        .filter(|(_, cells)| cells.iter().any(|cell| !cell.is_empty()))
        .collect();
    let cells = |(name, cells): &(&str, Vec<String>)| -> Vec<String> {
        let width = cells.iter().map(|cell| cell.chars().count()).chain([name.len()]).max().unwrap_or_default();
        std::iter::once(*name).chain(cells.iter().map(String::as_str)).map(|cell| format!("{cell:>width$}  ")).collect()
    };
    let mut drawn: Vec<String> = vec![String::new(); lines.len() + 1];
    for column in columns.iter().map(cells) {
        drawn.iter_mut().zip(column).for_each(|(line, cell)| line.push_str(&cell));
    }
    for (line, (tree, _)) in drawn.iter_mut().skip(1).zip(lines) {
        line.push_str(tree);
    }
    drawn.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

fn shown(number: u64, show: impl Fn(u64) -> String) -> String {
    if number == 0 { String::new() } else { show(number) }
}

/// Formats a number with a comma before each three digits.
fn grouped(number: u64) -> String {
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

/// Formats a number of bytes.
pub(super) fn size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} KB", tenths(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}

fn time(time: Duration) -> String {
    match time.as_micros() {
        micros @ 0..1_000 => format!("{micros} µs"),
        1_000..1_000_000 => format!("{:.2} ms", time.as_secs_f64() * 1_000.0),
        _ => format!("{:.2} s", time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_in_line_before_the_tree_and_empty_ones_are_left_out() {
        let sort = Measures {
            rows: 1_234_567,
            spills: 3,
            spilled_bytes: 64_200_000,
            time: Duration::from_millis(2_500),
            ..Measures::default()
        };
        let scan = Measures { rows: 12, documents: 12, bytes: 999, time: Duration::from_micros(1_530), ..sort };
        let scan = Measures { spills: 0, ..scan };
        let drawn = draw(&[("SORT { a: 1 }".into(), sort), ("└─ SCAN c forward".into(), scan)]);
        let right = [
            "     rows  documents   read       spilled     time",
            "1,234,567                    64.2 MB in 3   2.50 s  SORT { a: 1 }",
            "       12         12  999 B                1.53 ms  └─ SCAN c forward",
        ];
        assert_eq!(drawn, right.join("\n"), "\n{drawn}");
    }
}
