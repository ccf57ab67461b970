use std::io::{self, Write};

use bson::{Bson, RawDocument};

use super::{Layout, Rows, text};

/// One document per line, as relaxed extended JSON.
struct Lines<'w>(&'w mut dyn Write);

pub(super) fn begin<'w>(out: &'w mut dyn Write, _: &'w Layout) -> Box<dyn Rows + 'w> {
    Box::new(Lines(out))
}

impl Rows for Lines<'_> {
    fn row(&mut self, document: &RawDocument) -> io::Result<()> {
        writeln!(self.0, "{}", text::relaxed(Bson::Document(text::document(document)?)))
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
