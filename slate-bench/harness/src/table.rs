//! Markdown tables with aligned source text.

use std::fmt;

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Left, for text.
    Left,
    /// Right, for numbers.
    Right,
}

/// A Markdown table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these columns.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|(name, align)| (escaped(name), *align)).collect();
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row. Missing cells are empty; surplus cells are dropped.
    pub fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = cells.into_iter().map(|cell| escaped(cell.as_ref())).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// Returns whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Escapes bars and replaces line breaks by spaces: both would end the cell.
fn escaped(cell: &str) -> String {
    cell.replace('|', "\\|").replace('\n', " ")
}

fn width(cell: &str) -> usize {
    cell.chars().count()
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(place, (name, _))| {
                let cells = self.rows.iter().filter_map(|row| row.get(place)).map(|cell| width(cell));
                cells.chain([width(name), 2]).max().unwrap_or_default()
            })
            .collect();
        let line = |f: &mut fmt::Formatter<'_>, cells: &mut dyn Iterator<Item = &String>| {
            for ((cell, (_, align)), width) in cells.zip(&self.columns).zip(&widths) {
                match align {
                    Align::Left => write!(f, "| {cell:<width$} ")?,
                    Align::Right => write!(f, "| {cell:>width$} ")?,
                }
            }
            writeln!(f, "|")
        };
        line(f, &mut self.columns.iter().map(|(name, _)| name))?;
        for ((_, align), width) in self.columns.iter().zip(&widths) {
            match align {
                Align::Left => write!(f, "|{:-<1$}", "", width + 2)?,
                Align::Right => write!(f, "|{:-<1$}:", "", width + 1)?,
            }
        }
        writeln!(f, "|")?;
        self.rows.iter().try_for_each(|row| line(f, &mut row.iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_aligned_and_escaped() {
        let mut table = Table::new(&[("query", Align::Left), ("time", Align::Right)]);
        table.row(["a | b", "1.30 ms"]);
        table.row(["scan"]);
        let drawn = "\
| query  |    time |
|--------|--------:|
| a \\| b | 1.30 ms |
| scan   |         |
";
        assert_eq!(table.to_string(), drawn);
    }
}
