use std::io::{self, Write};

use bson::{Document, RawDocument};
use console::{Alignment, measure_text_width, pad_str};

use super::{Layout, Rows, cell, columns, text};

/// The largest group of documents, in documents and in bytes, that is printed below one header with columns of the same widths.
const BLOCK: usize = 1_000;
const BLOCK_BYTES: usize = 16 << 20;

/// Maximum width of a cell, unless the table has only one column.
const WIDEST: usize = 40;

/// Narrowest cell that is shortened to fit.
const NARROWEST: usize = 10;

/// Maximum number of columns that are named below a table in which they do not fit.
const HIDDEN_NAMED: usize = 20;

/// The space between columns.
const GAP: &str = "  ";

/// Documents as an aligned table that fits the terminal.
struct TableDocuments<'w> {
    out: &'w mut dyn Write,
    layout: &'w Layout,
    block: Vec<Document>,
    bytes: usize,
}

pub(super) fn begin<'w>(out: &'w mut dyn Write, layout: &'w Layout) -> Box<dyn Rows + 'w> {
    Box::new(TableDocuments { out, layout, block: Vec::new(), bytes: 0 })
}

impl TableDocuments<'_> {
    fn write_block(&mut self) -> io::Result<()> {
        let block = std::mem::take(&mut self.block);
        self.bytes = 0;
        let fields = columns::fields(&block);
        if fields.is_empty() {
            return Ok(());
        }
        // No more columns fit: even an empty one takes the space after it.
        let shown = self.layout.width / GAP.len() + 1;
        let mut grid = Grid::new(fields);
        for document in &block {
            let fields = grid.header.iter().take(shown);
            let values: Vec<_> = fields.map(|field| document.get(field)).collect();
            let cells = values.into_iter().map(|value| {
                value.map_or_else(Cell::default, |value| Cell {
                    text: cell::shown(value),
                    number: cell::is_number(value),
                })
            });
            grid.rows.push(cells.collect());
        }
        grid.write(self.out, self.layout.width)
    }
}

impl Rows for TableDocuments<'_> {
    fn row(&mut self, document: &RawDocument) -> io::Result<()> {
        self.block.push(text::document(document)?);
        self.bytes += document.as_bytes().len();
        if self.block.len() >= BLOCK || self.bytes >= BLOCK_BYTES { self.write_block() } else { Ok(()) }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_block()
    }
}

/// A table of text.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    header: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    text: String,
    /// Whether the cell is aligned to the right.
    number: bool,
}

impl Grid {
    pub(crate) fn new(header: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { header: header.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row. Cells that begin with a digit are aligned to the right.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        let cell = |text: String| {
            let number = text.starts_with(|first: char| first.is_ascii_digit());
            Cell { text, number }
        };
        self.rows.push(cells.into_iter().map(|text| cell(text.into())).collect());
    }

    /// Writes the table, at most `width` characters wide: long cells are shortened, columns that do not fit are named below.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    pub(crate) fn write(&self, out: &mut dyn Write, width: usize) -> io::Result<()> {
        let header: Vec<_> = self.header.iter().map(|name| cell::one_line(name)).collect();
        let widths = header.iter().enumerate().map(|(at, name)| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| measure_text_width(&cell.text));
            cells.chain([measure_text_width(name)]).max().unwrap_or_default()
        });
        let fitting = fitting(widths, width);
        let mut line = |cells: &mut dyn Iterator<Item = (&str, Alignment)>| {
            let cells = cells.zip(&fitting).map(|((text, side), width)| pad_str(text, *width, side, Some("…")));
            let line = cells.collect::<Vec<_>>().join(GAP);
            writeln!(out, "{}", line.trim_end())
        };
        line(&mut header.iter().map(|name| (name.as_ref(), Alignment::Left)))?;
        let rule: Vec<String> = fitting.iter().map(|width| "─".repeat(*width)).collect();
        line(&mut rule.iter().map(|rule| (rule.as_str(), Alignment::Left)))?;
        for row in &self.rows {
            let side = |cell: &Cell| if cell.number { Alignment::Right } else { Alignment::Left };
            line(&mut row.iter().map(|cell| (cell.text.as_str(), side(cell))))?;
        }
        match header.get(fitting.len()..).unwrap_or_default() {
            [] => Ok(()),
            hidden if hidden.len() <= HIDDEN_NAMED => writeln!(out, "not shown: {}", hidden.join(", ")),
            hidden => {
                let (named, more) = hidden.split_at(HIDDEN_NAMED);
                writeln!(out, "not shown: {} and {} more", named.join(", "), more.len())
            }
        }
    }
}

/// Returns the widths of as many leading columns as fit into `width`, at least of the first. The last of them may be
/// narrower than its content. The widths of further columns are not computed.
fn fitting(widths: impl ExactSizeIterator<Item = usize>, width: usize) -> Vec<usize> {
    let only = widths.len() == 1;
    let (mut fitting, mut used) = (Vec::new(), 0);
    for wanted in widths {
        let room = width.saturating_sub(used);
        let column = if only { wanted } else { wanted.min(WIDEST) };
        if fitting.is_empty() {
            fitting.push(column.min(room));
        } else if column <= room {
            fitting.push(column);
        } else {
            if room >= NARROWEST {
                fitting.push(room);
            }
            break;
        }
        used += fitting.last().copied().unwrap_or_default() + GAP.len();
    }
    fitting
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(grid: &Grid, width: usize) -> String {
        let mut out = Vec::new();
        grid.write(&mut out, width).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_aligned_and_fit_the_width() {
        let mut grid = Grid::new(["name", "n", "note"]);
        grid.row(["Ada", "5", "x"]);
        grid.row(["日本", "1,000", "a longer text"]);
        assert_eq!(
            written(&grid, 80),
            "name  n      note\n────  ─────  ─────────────\nAda       5  x\n日本  1,000  a longer text\n"
        );
        assert_eq!(written(&grid, 20), "name  n\n────  ─────\nAda       5\n日本  1,000\nnot shown: note\n");
        assert_eq!(
            written(&grid, 23),
            "name  n      note\n────  ─────  ──────────\nAda       5  x\n日本  1,000  a longer …\n"
        );
        assert_eq!(written(&grid, 3), "na…\n───\nAda\n日…\nnot shown: n, note\n");
    }

    #[test]
    fn many_columns_take_no_longer_than_their_bytes() {
        // Each document has fields of its own: ten million cells if every column were filled.
        let layout = Layout { width: 80, ..Layout::default() };
        let mut out = Vec::new();
        let mut rows = begin(&mut out, &layout);
        for row in 0..1_000 {
            let fields: Document = (0..10).map(|field| (format!("f{}", row * 10 + field), field.into())).collect();
            rows.row(&bson::RawDocumentBuf::try_from(&fields).unwrap()).unwrap();
        }
        let begun = std::time::Instant::now();
        rows.finish().unwrap();
        drop(rows);
        assert!(begun.elapsed() < std::time::Duration::from_secs(5));
        let table = String::from_utf8(out).unwrap();
        let header: Vec<_> = table.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(header.first(), Some(&"f0"));
        let more = 10_000 - header.len() - HIDDEN_NAMED;
        assert!(table.ends_with(&format!(" and {more} more\n")), "{}", table.lines().last().unwrap());
    }

    #[test]
    fn names_are_on_one_line_and_hidden_columns_are_counted() {
        let mut grid = Grid::new(["a\n\u{1b}[31m".to_owned()].into_iter().chain((0..30).map(|n| format!("column{n}"))));
        grid.row(["x"]);
        let table = written(&grid, 20);
        assert!(table.starts_with("a  [31m  column0\n"), "{table}");
        assert!(table.ends_with("column19, column20 and 9 more\n"), "{table}");
    }
}
