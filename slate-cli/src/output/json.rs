use std::io::{self, Write};

use bson::{Bson, RawDocument};

use super::{Layout, Rows, text};

/// One array of documents, as relaxed extended JSON over several lines.
struct Array<'w> {
    out: &'w mut dyn Write,
    before: &'static str,
}

pub(super) fn begin<'w>(out: &'w mut dyn Write, _: &'w Layout) -> Box<dyn Rows + 'w> {
    Box::new(Array { out, before: "[" })
}

impl Rows for Array<'_> {
    fn row(&mut self, document: &RawDocument) -> io::Result<()> {
        let json = text::relaxed_json(Bson::Document(text::document(document)?));
        let text = serde_json::to_string_pretty(&json)?;
        write!(self.out, "{}\n  {}", self.before, text.replace('\n', "\n  "))?;
        self.before = ",";
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.before == "[" { writeln!(self.out, "[]") } else { writeln!(self.out, "\n]") }
    }
}
