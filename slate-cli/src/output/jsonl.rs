use std::io::{self, Write};

use bson::{Bson, RawDocument};

use super::{Layout, Rows, text};

/// One document per line, as extended JSON.
struct Lines<'w> {
    out: &'w mut dyn Write,
    text: fn(Bson) -> String,
}

pub(super) fn begin_relaxed<'w>(out: &'w mut dyn Write, _: &'w Layout) -> Box<dyn Rows + 'w> {
    Box::new(Lines { out, text: text::relaxed })
}

/// Begins output as canonical extended JSON, which preserves every type.
pub(super) fn begin_canonical<'w>(out: &'w mut dyn Write, _: &'w Layout) -> Box<dyn Rows + 'w> {
    Box::new(Lines { out, text: text::canonical })
}

impl Rows for Lines<'_> {
    fn row(&mut self, document: &RawDocument) -> io::Result<()> {
        writeln!(self.out, "{}", (self.text)(Bson::Document(text::document(document)?)))
    }
}
